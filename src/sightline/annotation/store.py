"""Annotation projects in the store: projects, items, annotators, the log, leases."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Row, delete, select, update
from sqlalchemy import insert as insert_one

from sightline.annotation.types import (
    ANNOTATOR,
    ENTRY,
    ITEM,
    PROJECT,
    Annotator,
    Entry,
    Item,
    Lease,
    Project,
    decode,
)
from sightline.errors import UserError, unknown_name
from sightline.store import schema
from sightline.store.answers import storable_text
from sightline.store.database import Connection, insert, insert_new, repeat_if_lost
from sightline.store.store import Store

_meta = schema.meta
_projects, _items = schema.annotation_projects, schema.annotation_items
_annotators, _log, _leases = schema.annotators, schema.annotation_log, schema.annotation_leases

SERVER_URL = "server_url"
"""The name in the table `meta` of the URL with which the links of annotators begin."""


class ProjectClosedError(UserError):
    """Nothing is added to a closed project."""


class ProjectRow(Struct, frozen=True):
    """A project as the store has it: its number, its start and its end (seconds since 1970, None if open)."""

    number: int
    project: Project
    secret: bytes
    created: float
    closed: float | None


class AnnotationStore:
    """The annotation projects of a store. Its methods block; the clock returns seconds since 1970."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.name = store.name
        self.database = store.database
        self._clock = clock

    def create(self, project: Project, items: Sequence[Item]) -> int:
        return self._create_once(project, items, uuid.uuid4().hex, secrets.token_bytes(32), self._clock())

    @repeat_if_lost
    def _create_once(
        self, project: Project, items: Sequence[Item], uid: str, secret: bytes, created: float
    ) -> int:
        """Add a project that a lost attempt may have added already."""
        with self.database.write() as connection:
            found = connection.core.execute(
                select(_projects.c.id, _projects.c.uid).where(_projects.c.name == project.name)
            ).one_or_none()
            if found is not None and found.uid == uid:
                return int(found.id)
            if found is not None:
                raise UserError(
                    "there is a project of this name in the store",
                    file=self.name,
                    found=project.name,
                    expected="another --name",
                )
            statement = insert_one(_projects).values(
                uid=uid,
                name=project.name,
                body=msgspec.json.encode(project),
                secret=secret,
                created=created,
            )
            number = int(connection.core.execute(statement.returning(_projects.c.id)).scalar_one())
            rows = [(number, item.number, msgspec.json.encode(item)) for item in items]
            insert(connection, _items.name, ("project", "number", "body"), rows)
            return number

    @repeat_if_lost
    def keep_server_url(self, url: str) -> None:
        """Keep the URL of the server, with which the links of later invitations begin."""
        with self.database.write() as connection:
            connection.core.execute(delete(_meta).where(_meta.c.name == SERVER_URL))
            connection.core.execute(insert_one(_meta).values(name=SERVER_URL, value=url))

    @repeat_if_lost
    def server_url(self) -> str:
        """The URL of the last server that named one; '' if none did."""
        with self.database.read() as connection:
            query = select(_meta.c.value).where(_meta.c.name == SERVER_URL)
            return connection.core.execute(query).scalar_one_or_none() or ""

    @repeat_if_lost
    def projects(self) -> list[ProjectRow]:
        with self.database.read() as connection:
            rows = connection.core.execute(select(_projects).order_by(_projects.c.id))
            return [_project(connection, row) for row in rows]

    def project(self, name: str) -> ProjectRow:
        rows = self.projects()
        for row in rows:
            if row.project.name == name:
                return row
        for row in rows:
            if str(row.number) == name:
                return row
        raise unknown_name("project", name, [row.project.name for row in rows])

    @repeat_if_lost
    def items(self, project: int) -> list[Item]:
        query = select(_items.c.number, _items.c.body).where(_items.c.project == project)
        with self.database.read() as connection:
            return [
                decode(connection.core, ITEM, "annotation_items", number, body)
                for number, body in connection.core.execute(query.order_by(_items.c.number))
            ]

    @repeat_if_lost
    def annotators(self, project: int) -> list[Annotator]:
        with self.database.read() as connection:
            return _annotators_of(connection, project)

    def invite(self, project: int, annotator: Annotator) -> Annotator:
        with self._changing(project) as connection:
            present = _annotators_of(connection, project)
            if any(one.name.casefold() == annotator.name.casefold() for one in present):
                raise UserError(
                    "the project has an annotator of this name", found=annotator.name, expected="another name"
                )
            added = replace(annotator, number=1 + max((one.number for one in present), default=0))
            values = {"project": project, "number": added.number, "body": msgspec.json.encode(added)}
            connection.core.execute(insert_one(_annotators).values(**values))
            return added

    def change_annotator(
        self, project: int, number: int, change: Callable[[Annotator], Annotator]
    ) -> Annotator:
        with self._changing(project) as connection:
            found = [one for one in _annotators_of(connection, project) if one.number == number]
            if not found:
                raise UserError("the project has no such annotator", found=number)
            changed = change(found[0])
            connection.core.execute(
                update(_annotators)
                .where(_annotators.c.project == project, _annotators.c.number == number)
                .values(body=msgspec.json.encode(changed))
            )
            return changed

    @repeat_if_lost
    def entries(self, project: int, after: int = 0) -> list[Entry]:
        with self.database.read() as connection:
            return _entries(connection, project, after)

    @repeat_if_lost
    def append(self, project: int, entries: Sequence[Entry]) -> list[Entry]:
        """Add entries to the log; one whose form is there adds nothing. They are committed at the return."""
        with self.transaction(project) as transaction:
            return [transaction.append(entry) for entry in entries]

    @repeat_if_lost
    def close(self, project: int, *, closed: bool = True) -> None:
        """Close a project, so that nothing is added any more; or open it again."""
        with self._changing(project) as connection:
            connection.core.execute(
                update(_projects)
                .where(_projects.c.id == project)
                .values(closed=self._clock() if closed else None)
            )

    @repeat_if_lost
    def drop(self, project: int) -> None:
        """Delete a project with all that the store has of it; its number is not used again."""
        with self.database.write() as connection:
            query = select(_projects.c.id).where(_projects.c.id == project).with_for_update()
            connection.core.execute(query)
            for table in (_items, _annotators, _log, _leases):
                connection.core.execute(delete(table).where(table.c.project == project))
            connection.core.execute(delete(_projects).where(_projects.c.id == project))

    @contextmanager
    def transaction(self, project: int) -> Iterator[Transaction]:
        """Begin a transaction on an open project. Those of one project take place one after another."""
        with self._changing(project) as connection:
            closed = connection.core.scalar(select(_projects.c.closed).where(_projects.c.id == project))
            if closed is not None:
                raise ProjectClosedError(
                    "the project is closed", expected="sightline annotate close --reopen"
                )
            yield Transaction(connection, project)

    @contextmanager
    def _changing(self, project: int) -> Iterator[Connection]:
        """A transaction that holds the row of a project: its entries are committed in their order."""
        with self.database.write() as connection:
            query = select(_projects.c.id).where(_projects.c.id == project).with_for_update()
            if connection.core.execute(query).first() is None:
                raise UserError("there is no such project", file=self.name, found=project)
            yield connection


class Transaction:
    """What one transaction may do with an open project."""

    def __init__(self, connection: Connection, project: int) -> None:
        self._connection = connection
        self._project = project

    def entries(self, after: int) -> list[Entry]:
        return _entries(self._connection, self._project, after)

    def annotators(self) -> list[Annotator]:
        return _annotators_of(self._connection, self._project)

    def find(self, form: str) -> Entry | None:
        """Find the entry of a form; None if the form was not sent before."""
        of_form = (_log.c.project == self._project) & (_log.c.form == storable_text(form))
        row = self._connection.core.execute(select(_log.c.id, _log.c.body).where(of_form)).one_or_none()
        return None if row is None else _entry(self._connection, *row)

    def append(self, entry: Entry) -> Entry:
        """Add an entry, and end the lease of its item; a remark leaves it."""
        found = self.find(entry.form)
        if found is not None:
            return found
        body = msgspec.json.encode(replace(entry, number=0))
        values = {"project": self._project, "form": storable_text(entry.form), "body": body}
        statement = insert_one(_log).values(**values).returning(_log.c.id)
        number = int(self._connection.core.execute(statement).scalar_one())
        if entry.action != "remark":
            self.end_leases(entry.annotator, entry.item)
        return replace(entry, number=number)

    def leases(self, now: float) -> list[Lease]:
        """Read the leases that have not ended at `now` (seconds since 1970); ended ones are dropped."""
        of_project = _leases.c.project == self._project
        self._connection.core.execute(delete(_leases).where(of_project, _leases.c.until <= now))
        query = select(_leases.c.item, _leases.c.annotator, _leases.c.until).where(of_project)
        return [Lease(*row) for row in self._connection.core.execute(query.order_by(_leases.c.item))]

    def lease(self, lease: Lease) -> None:
        """Give an item into an annotator's hands, or renew the lease."""
        self.end_leases(lease.annotator, lease.item)
        row = (self._project, lease.item, lease.annotator, lease.until)
        columns = ("project", "item", "annotator", "until")
        insert_new(self._connection, _leases.name, columns, [row])

    def end_leases(self, annotator: int, item: int) -> None:
        of_item = (_leases.c.annotator == annotator) & (_leases.c.item == item)
        self._connection.core.execute(delete(_leases).where(_leases.c.project == self._project, of_item))


def _project(connection: Connection, row: Row[Any]) -> ProjectRow:
    project = decode(connection.core, PROJECT, "annotation_projects", row.id, row.body)
    return ProjectRow(row.id, project, bytes(row.secret), row.created, row.closed)


def _annotators_of(connection: Connection, project: int) -> list[Annotator]:
    query = select(_annotators.c.number, _annotators.c.body).where(_annotators.c.project == project)
    return [
        decode(connection.core, ANNOTATOR, "annotators", number, body)
        for number, body in connection.core.execute(query.order_by(_annotators.c.number))
    ]


def _entries(connection: Connection, project: int, after: int) -> list[Entry]:
    query = select(_log.c.id, _log.c.body).where(_log.c.project == project, _log.c.id > after)
    return [_entry(connection, *row) for row in connection.core.execute(query.order_by(_log.c.id))]


def _entry(connection: Connection, number: int, body: bytes) -> Entry:
    return replace(decode(connection.core, ENTRY, "annotation_log", number, body), number=number)
