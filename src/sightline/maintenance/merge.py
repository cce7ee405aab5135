"""Joins stores: everything that the sources hold is in the target afterwards, each record once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct
from sqlalchemy import func, insert, select

from sightline.engine import schema
from sightline.engine.connect import display
from sightline.engine.database import insert_new
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError, UserError
from sightline.maintenance.merge_answers import merge_answers
from sightline.maintenance.merge_runs import MergedRun, merge_runs
from sightline.maintenance.opening import refuse_newer, sqlite_path, unchanged_store
from sightline.maintenance.table_reader import read_pages
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
        different_answers: The number of requests to which both had an answer, with different texts.
        runs: Its runs.
    """

    source: str
    attempts: int
    new_attempts: int
    different_answers: int
    runs: Sequence[MergedRun]


def merge(sources: Sequence[str], target: str, *, show_progress: bool) -> Iterator[MergedStore]:
    """Add everything that stores hold to another store. Merged twice, or in another order, it is the same.

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
    while not target.claims.take([_TURN]):
        time.sleep(_WAIT_SECONDS)
    try:
        with target.claims.renewed():
            yield
    finally:
        with suppress(EnvironmentFailedError):  # a claim that is not released lapses
            target.claims.release()


def _merge_one(url: str, target: Store, *, show_progress: bool) -> MergedStore:
    with unchanged_store(url) as source:
        with source.database.read() as connection:
            count = connection.execute(select(func.count()).select_from(schema.answers)).scalar_one()
        with progress(f"merge {display(url)}", count, "rows", show_progress=show_progress) as advance:
            answers = merge_answers(source, target, advance)
        _merge_endpoints(source, target)
        _merge_caches(source, target)
        runs = merge_runs(source, target)
    return MergedStore(
        source=display(url),
        attempts=count,
        new_attempts=answers.new,
        different_answers=answers.different,
        runs=runs,
    )


def _merge_endpoints(source: Store, target: Store) -> None:
    known = {(created, body) for created, body, _ in _endpoints(target)}
    rows = [
        {"created": created, "identity": identity, "body": body}
        for created, body, identity in _endpoints(source)
        if (created, body) not in known
    ]
    if rows:
        with target.database.write() as connection:
            connection.execute(insert(schema.endpoints), rows)


def _endpoints(store: Store) -> list[tuple[float, bytes, str]]:
    """When each record of an endpoint was made, its content, and its model as the column has it."""
    table = schema.endpoints
    with store.database.read() as connection:
        rows = connection.execute(
            select(table.c.created, table.c.body, table.c.identity).order_by(table.c.id)
        )
        return [(created, bytes(body), identity) for created, body, identity in rows]


def _merge_caches(source: Store, target: Store) -> None:
    for table in CACHES:
        for page in read_pages(source.database, table):
            with target.database.write() as connection:
                rows = [(bytes(row["key"]), bytes(row["body"])) for row in page]
                insert_new(connection, table, ("key", "body"), rows)


def _is_same(source: str, target: str) -> bool:
    paths = sqlite_path(source), sqlite_path(target)
    if paths[0] is None or paths[1] is None:
        return source == target
    return paths[0].exists() and paths[1].exists() and paths[0].samefile(paths[1])
