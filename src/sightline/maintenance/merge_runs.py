"""Copies runs from one store to another. A run has one identity in all stores, so that it is copied once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import Connection, delete, func, insert, select, update

from sightline.engine import schema
from sightline.engine.database import insert as insert_rows
from sightline.engine.dictionaries import Dictionaries
from sightline.engine.existing_run import deleted_run, is_there
from sightline.engine.probe_chunks import probes_of
from sightline.engine.runs import write_chunk
from sightline.engine.store import Store
from sightline.maintenance.table_reader import read_pages

_UNFINISHED = "+"
"""Ends the identity of a run that is being copied: a merge that is repeated copies it anew."""


class MergedRun(Struct, frozen=True, kw_only=True):
    """A run of a source, its number in the target, whether it was there, and what was not copied of it."""

    run: int
    into: int
    state: Literal["added", "completed", "there already"]
    note: str = ""


def merge_runs(source: Store, target: Store) -> list[MergedRun]:
    """Copy the runs that a store lacks, and what it lacks of a run that was not finished.

    Args:
        source: The store to read.
        target: The store to add to.

    Returns:
        The runs of the source.

    Raises:
        EnvironmentFailedError: A store fails, or a run is deleted while it is copied; a run that was not
            copied whole is copied anew next time.
    """
    with source.database.read() as connection:
        runs = connection.execute(select(schema.runs).order_by(schema.runs.c.id)).mappings().all()
    return [_merge_run(source, target, run) for run in runs]


def _merge_run(source: Store, target: Store, run: Any) -> MergedRun:
    runs = schema.runs
    with target.database.write() as connection:
        partial = select(runs.c.id).where(runs.c.uid == run["uid"] + _UNFINISHED)
        for number in connection.execute(partial).scalars().all():
            _delete_content(connection, number)
            connection.execute(delete(runs).where(runs.c.id == number))
        found = connection.execute(
            select(runs.c.id, runs.c.finished).where(runs.c.uid == run["uid"])
        ).one_or_none()
        if found is None:
            values = {"uid": run["uid"] + _UNFINISHED, "body": run["body"], "created": run["created"]}
            added = connection.execute(insert(runs).values(**values)).inserted_primary_key
            assert added is not None
            number = int(added[0])
        else:
            number = found.id
    if found is not None and not _has_more(source, target, run, found):
        return MergedRun(run=run["id"], into=number, state="there already")
    if found is not None:
        with target.database.write() as connection:
            _delete_content(connection, number)
    _copy_content(source, target, run["id"], number)
    with _writing(target, number) as connection:
        values = {"uid": run["uid"], "body": run["body"], "finished": run["finished"]}
        connection.execute(update(runs).where(runs.c.id == number).values(**values))
    if found is not None:
        return MergedRun(run=run["id"], into=number, state="completed")
    return MergedRun(
        run=run["id"], into=number, state="added", note=_copy_labels(source, target, run["id"], number)
    )


def _copy_labels(source: Store, target: Store, run: int, number: int) -> str:
    """Copy name, tags and note of a run; returns why it has no name now, '' if it has its own."""
    labels = source.labels.of(run)
    target.labels.add_tags(number, labels.tags)
    if labels.note:
        target.labels.set_note(number, labels.note)
    if labels.name is None:
        return ""
    if (holder := target.labels.names().get(labels.name)) is not None:
        return f"run {number} has no name: {labels.name} is the name of run {holder}"
    target.labels.give_name(number, labels.name)
    return ""


def _has_more(source: Store, target: Store, run: Any, found: Any) -> bool:
    """Whether the source has more of a run than the target, where it is not finished."""
    if found.finished is not None:
        return False
    return run["finished"] is not None or _key_bytes(source, run["id"]) > _key_bytes(target, found.id)


def _key_bytes(store: Store, run: int) -> int:
    """A measure of how many probes of a run a store holds."""
    query = select(func.sum(func.length(schema.probes.c.answer_keys))).where(schema.probes.c.run == run)
    with store.database.read() as connection:
        return int(connection.execute(query).scalar_one() or 0)


def _copy_content(source: Store, target: Store, run: int, number: int) -> None:
    dictionaries = Dictionaries(target.name)
    for chunk in source.runs.chunks(run):
        with _writing(target, number) as connection:
            write_chunk(connection, dictionaries, number, probes_of(chunk))
    for page in read_pages(source.database, schema.verdicts, schema.verdicts.c.run == run):
        with _writing(target, number) as connection:
            rows = [(number, row["body"]) for row in page]
            insert_rows(connection, schema.verdicts, ("run", "body"), rows)


@contextmanager
def _writing(target: Store, number: int) -> Iterator[Connection]:
    """A transaction that writes something of a run: if somebody has deleted it, nothing of it is added."""
    with target.database.write() as connection:
        if not is_there(connection, number):
            raise deleted_run(number, target.name)
        yield connection


def _delete_content(connection: Connection, number: int) -> None:
    for table in (schema.probes, schema.verdicts):
        connection.execute(delete(table).where(table.c.run == number))
