"""Copies annotation projects from one store to another; whatever an annotator did is there once."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, func, insert, select

from sightline.engine import schema
from sightline.engine.core_connection import plain
from sightline.engine.database import insert as insert_rows
from sightline.engine.store import Store
from sightline.maintenance.sound_rows import SoundRows

_projects, _items = schema.annotation_projects, schema.annotation_items
_annotators, _log = schema.annotators, schema.annotation_log


def merge_annotations(sound: SoundRows, target: Store) -> list[str]:
    """Add the annotation projects of a store to another one.

    A project that both have gets the annotators and the entries of the log that it lacks; forms tell which.

    Args:
        sound: Reads the sound rows of the source.
        target: The store to add to.

    Returns:
        Notes on projects whose name was taken.
    """
    notes = []
    for page in sound.pages(_projects):
        for project in page:
            with target.database.core_write() as connection:
                number, note = _project(connection, project)
                notes += [note] if note else []
                _copy_items(connection, sound, project["id"], number)
                numbers = _copy_annotators(connection, sound, project["id"], number)
                _copy_log(connection, sound, project["id"], number, numbers)
    return notes


def _project(connection: Connection, project: RowMapping) -> tuple[int, str]:
    """The number of a project in the target, where it may be new, and a note if its name was taken."""
    uid = _projects.c.uid == project["uid"]
    found = connection.scalar(select(_projects.c.id).where(uid).with_for_update())
    if found is not None:
        return int(found), ""
    names = set(connection.scalars(select(_projects.c.name)))
    name = project["name"]
    tries = 1
    while name in names:
        tries += 1
        name = f"{project['name']}-{tries}"
    body = msgspec.json.encode({**msgspec.json.decode(project["body"]), "name": name})
    values = {key: project[key] for key in ("uid", "secret", "created", "closed")}
    statement = insert(_projects).values(**values, name=name, body=body).returning(_projects.c.id)
    number = int(connection.execute(statement).scalar_one())
    taken = f"the annotation project {project['name']} is called {name}: another one has its name"
    return number, taken if name != project["name"] else ""


def _copy_items(connection: Connection, sound: SoundRows, project: int, number: int) -> None:
    """Copy the items of a new project; those of a project never change."""
    there = select(func.count()).select_from(_items).where(_items.c.project == number)
    if not connection.scalar(there):
        for page in sound.pages(_items, _items.c.project == project):
            rows = [(number, row["number"], row["body"]) for row in page]
            insert_rows(plain(connection), _items.name, ("project", "number", "body"), rows)


def _copy_annotators(connection: Connection, sound: SoundRows, project: int, number: int) -> dict[int, int]:
    """Add annotators by name; returns the number of each in the target by its number in the source."""
    query = select(_annotators.c.number, _annotators.c.body).where(_annotators.c.project == number)
    known = {_name(msgspec.json.decode(body)): one for one, body in connection.execute(query)}
    last, numbers = max(known.values(), default=0), {}
    for page in sound.pages(_annotators, _annotators.c.project == project):
        for row in page:
            annotator = msgspec.json.decode(row["body"])
            if _name(annotator) not in known:
                last += 1
                body = msgspec.json.encode({**annotator, "number": last})
                insert_rows(
                    plain(connection), _annotators.name, ("project", "number", "body"), [(number, last, body)]
                )
                known[_name(annotator)] = last
            numbers[row["number"]] = known[_name(annotator)]
    return numbers


def _copy_log(
    connection: Connection, sound: SoundRows, project: int, number: int, numbers: dict[int, int]
) -> None:
    """Add the entries whose form the target lacks, in their order."""
    known = set(connection.scalars(select(_log.c.form).where(_log.c.project == number)))
    for page in sound.pages(_log, _log.c.project == project):
        rows = []
        for row in page:
            if row["form"] not in known:
                entry = msgspec.json.decode(row["body"])
                by = numbers.get(entry["annotator"], entry["annotator"])
                rows.append((number, row["form"], msgspec.json.encode({**entry, "annotator": by})))
        insert_rows(plain(connection), _log.name, ("project", "form", "body"), rows)


def _name(annotator: Any) -> str:
    return str(annotator["name"]).casefold()
