"""Joins stores: everything that the sources hold is in the target afterwards, each record once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct
from sqlalchemy import func, insert, select

from sightline.engine import schema
from sightline.engine.connect import display, sqlite_path
from sightline.engine.database import insert_new
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError, UserError
from sightline.maintenance.merge_annotations import merge_annotations
from sightline.maintenance.merge_answers import merge_answers
from sightline.maintenance.merge_batches import merge_batches
from sightline.maintenance.merge_runs import MergedRun, merge_runs
from sightline.maintenance.opening import refuse_newer, unchanged_store
from sightline.maintenance.sound_rows import LostRows, SoundRows
from sightline.progress import progress

CACHES = (schema.vectors, schema.readings)
"""Caches by content. Metadata of image files belongs to the paths of one machine, and is not copied."""


_TURN = hashlib.sha256(b"a merge").hexdigest()
"""The key that a merge claims in the target, as if it were a request."""
_WAIT_SECONDS = 0.25


class MergedStore(Struct, frozen=True, kw_only=True):
    """What was copied from a source.

    Attributes:
        source: Its path or URL.
        attempts: The number of its attempts.
        new_attempts: Those that the target did not have.
        answered_requests: The number of requests of these to which the target had an answer.
        different_answers: Those among them with an answer of another text.
        runs: Its runs.
        lost: Its damaged rows, which were not copied.
        notes: Remarks on annotation projects.
    """

    source: str
    attempts: int
    new_attempts: int
    answered_requests: int
    different_answers: int
    runs: Sequence[MergedRun]
    lost: Sequence[LostRows] = ()
    notes: Sequence[str] = ()


def merge(sources: Sequence[str], target: str, *, show_progress: bool) -> Iterator[MergedStore]:
    """Add everything that stores hold to another store. Merged twice, or in another order, it is the same.

    Rows are checked as `verify` checks them; what is damaged is left out.

    Merges into one store take turns. While one goes on, the store is not cleaned.

    Args:
        sources: Paths or database URLs; they are not changed.
        target: The path or database URL of the other store; it is created if it does not exist.
        show_progress: Whether progress is displayed.

    Yields:
        What was copied from each source, as soon as it is.

    Raises:
        UserError: A source is no store, a newer one, or the target; found before anything is written.
        EnvironmentFailedError: A store fails; the same command copies the rest.
    """
    for source in sources:
        if _is_same(source, target):
            raise UserError("is a source and the target", file=display(source), expected="another --into")
        refuse_newer(source)
    store = Store.open(target)
    try:
        with _turn(store):
            for source in sources:
                yield _merge_one(source, store, show_progress=show_progress)
    finally:
        store.close()


@contextmanager
def _turn(target: Store) -> Iterator[None]:
    """Wait until no other process merges into a store, and hold the others back until the block ends."""
    with target.claims.renewed():
        while not target.claims.take([_TURN]):
            time.sleep(_WAIT_SECONDS)
        try:
            yield
        finally:
            with suppress(EnvironmentFailedError):  # a claim that is not released lapses
                target.claims.release()


def _merge_one(url: str, target: Store, *, show_progress: bool) -> MergedStore:
    with unchanged_store(url) as source:
        sound = SoundRows(source)
        with source.database.core_read() as connection:
            count = connection.execute(select(func.count()).select_from(schema.answers)).scalar_one()
        with progress(f"merge {display(url)}", count, "rows", show_progress=show_progress) as advance:
            answers = merge_answers(source, sound, target, advance)
        _merge_endpoints(sound, target)
        merge_batches(sound, target)
        _merge_caches(sound, target)
        notes = merge_annotations(sound, target)
        runs = merge_runs(source, sound, target)
    return MergedStore(
        source=display(url),
        attempts=count,
        new_attempts=answers.new,
        answered_requests=answers.answered,
        different_answers=answers.different,
        runs=runs,
        lost=sound.lost(),
        notes=notes,
    )


def _merge_endpoints(sound: SoundRows, target: Store) -> None:
    table = schema.endpoints
    with target.database.core_read() as connection:
        rows = connection.execute(select(table.c.created, table.c.body))
        known = {(created, bytes(body)) for created, body in rows}
    for page in sound.pages(table):
        new = [
            {name: row[name] for name in ("created", "identity", "body")}
            for row in page
            if (row["created"], bytes(row["body"])) not in known
        ]
        if new:
            with target.database.core_write() as connection:
                connection.execute(insert(table), new)


def _merge_caches(sound: SoundRows, target: Store) -> None:
    for table in CACHES:
        for page in sound.pages(table):
            with target.database.write() as connection:
                rows = [(bytes(row["key"]), bytes(row["body"])) for row in page]
                insert_new(connection, table.name, ("key", "body"), rows)


def _is_same(source: str, target: str) -> bool:
    paths = sqlite_path(source), sqlite_path(target)
    if paths[0] is None or paths[1] is None:
        return source == target
    return paths[0].exists() and paths[1].exists() and paths[0].samefile(paths[1])
