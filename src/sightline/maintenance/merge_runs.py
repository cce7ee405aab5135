"""Copies runs from one store to another. A run has one identity in all stores, so that it is copied once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, delete, func, insert, select, update

from sightline.engine import schema
from sightline.engine.core_connection import plain
from sightline.engine.database import insert as insert_rows
from sightline.engine.dictionaries import Dictionaries
from sightline.engine.existing_run import deleted_run, is_there
from sightline.engine.probe_chunks import probes_of
from sightline.engine.runs import write_chunk
from sightline.engine.store import Store
from sightline.maintenance.run_checks import missing
from sightline.maintenance.sound_rows import SoundRows
from sightline.results.stored_run import read_stored_run

_UNFINISHED = "+"
"""Ends the identity of a run that is being copied: a merge that is repeated copies it anew."""


class MergedRun(Struct, frozen=True, kw_only=True):
    """A run of a source, its number in the target, whether it was there, and what was not copied of it."""

    run: int
    into: int
    state: Literal["added", "completed", "there already"]
    note: str = ""


def merge_runs(source: Store, sound: SoundRows, target: Store) -> list[MergedRun]:
    """Copy the runs that a store lacks, and what it lacks of a run that was not finished.

    A run that lost something is not finished in the target. One with a damaged description is not copied.

    Args:
        source: The store to read.
        sound: Reads its sound rows; the answers were read.
        target: The store to add to.

    Returns:
        The runs of the source.

    Raises:
        EnvironmentFailedError: A store fails, or a run is deleted while it is copied; a run that was not
            copied whole is copied anew next time.
    """
    with source.database.core_read() as connection:
        rows = connection.execute(select(schema.runs).order_by(schema.runs.c.id)).mappings().all()
        runs = sound.sound(connection, schema.runs, rows)
    return [_merge_run(source, sound, target, run) for run in runs]


def _merge_run(source: Store, sound: SoundRows, target: Store, run: Any) -> MergedRun:
    runs = schema.runs
    with target.database.core_write() as connection:
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
    if found is not None and found.finished is not None:
        return MergedRun(run=run["id"], into=number, state="there already")
    copy = _what_to_copy(source, sound, target, run)
    if found is not None:
        if copy.finished is None and copy.key_bytes <= _key_bytes(target, number):
            return MergedRun(run=run["id"], into=number, state="there already")
        with target.database.core_write() as connection:
            _delete_content(connection, number)
    _copy_content(source, sound, target, copy, number)
    with _writing(target, number) as connection:
        values = {"uid": run["uid"], "body": run["body"], "finished": copy.finished}
        connection.execute(update(runs).where(runs.c.id == number).values(**values))
    if found is not None:
        return MergedRun(run=run["id"], into=number, state="completed")
    notes = [_copy_labels(source, target, run["id"], number)]
    if copy.finished is None and run["finished"] is not None:
        notes.append(f"run {number} lacks what is damaged, and is not finished any more")
    return MergedRun(run=run["id"], into=number, state="added", note="; ".join(filter(None, notes)))


class _Copy(NamedTuple):
    """What a source can give of a run: its number there, its end if nothing is lost, its damaged chunks."""

    run: int
    finished: float | None
    damaged: Sequence[int]
    key_bytes: int


def _what_to_copy(source: Store, sound: SoundRows, target: Store, run: Any) -> _Copy:
    number = run["id"]
    damaged = [row["place"] for row in sound.damaged(schema.probes, schema.probes.c.run == number)]
    lost = bool(damaged or sound.damaged(schema.verdicts, schema.verdicts.c.run == number))
    if not lost and run["finished"] is not None and sound.left_out(schema.answers):
        lost = bool(missing(source, read_stored_run(source, number), target.answers))
    return _Copy(number, None if lost else run["finished"], damaged, _key_bytes(source, number, damaged))


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


def _key_bytes(store: Store, run: int, damaged: Sequence[int] = ()) -> int:
    """A measure of how many probes of a run a store holds outside of damaged chunks."""
    table = schema.probes.c
    size = func.sum(func.length(table.answer_keys))
    query = select(size).where(table.run == run, table.place.not_in(damaged))
    with store.database.core_read() as connection:
        return int(connection.execute(query).scalar_one() or 0)


def _copy_content(source: Store, sound: SoundRows, target: Store, copy: _Copy, number: int) -> None:
    dictionaries = Dictionaries(target.name)
    for chunk in source.runs.chunks(copy.run, skip=copy.damaged):
        with _writing(target, number) as connection:
            write_chunk(plain(connection), dictionaries, number, probes_of(chunk))
    for page in sound.pages(schema.verdicts, schema.verdicts.c.run == copy.run):
        with _writing(target, number) as connection:
            rows = [(number, row["body"]) for row in page]
            insert_rows(plain(connection), schema.verdicts.name, ("run", "body"), rows)


@contextmanager
def _writing(target: Store, number: int) -> Iterator[Connection]:
    """A transaction that writes something of a run: if somebody has deleted it, nothing of it is added."""
    with target.database.core_write() as connection:
        if not is_there(plain(connection), number):
            raise deleted_run(number, target.name)
        yield connection


def _delete_content(connection: Connection, number: int) -> None:
    for table in (schema.probes, schema.verdicts):
        connection.execute(delete(table).where(table.c.run == number))
