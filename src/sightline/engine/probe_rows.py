"""The rows of the probes of a run: keys of answers, without the definitions that they belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from sightline.engine.connection import Connection
from sightline.engine.database import Database, announce_insert, insert_new
from sightline.engine.database_errors import damage, repeat_if_lost
from sightline.engine.runs import keys_of_row, with_checksum

PAGE = 64
"""Rows that are read together; each has 8 KB or more."""


class ProbeRow(NamedTuple):
    """A chunk of the probes of a run.

    `place` is the position of the first probe, `definitions` the number of the definitions and `digest` their
    SHA-256. `keys` are the keys of the answers, one after the other.
    """

    place: int
    definitions: int
    digest: bytes
    keys: bytes

    @property
    def content(self) -> bytes:
        """What the chunk says, the same in all runs with equal probes and keys; without the keys."""
        return b"%d " % self.place + self.digest


class RunProbes(NamedTuple):
    """The identity of a run in all stores, and the SHA-256 of its probes and keys."""

    uid: str
    digest: bytes


def probe_rows(database: Database, run: int) -> Iterator[ProbeRow]:
    """Read the rows of a run.

    Args:
        database: The database of the store.
        run: The number of the run.

    Yields:
        The rows in the order of their places.

    Raises:
        EnvironmentFailedError: A row is damaged.
    """
    after = -1
    while rows := _page_once(database, run, after):
        yield from rows
        after = rows[-1].place


@repeat_if_lost
def run_probes(database: Database, run: int) -> RunProbes:
    """Compute what `copy_probes` compares.

    Args:
        database: The database of the store.
        run: The number of the run, which exists.

    Returns:
        The identity of the run, and the digest of its rows.

    Raises:
        EnvironmentFailedError: A row is damaged.
    """
    digest = hashlib.sha256()
    for row in probe_rows(database, run):
        _add(digest, row)
    with database.read() as connection:
        ((uid,),) = connection.rows("SELECT uid FROM runs WHERE id = ?", (run,))
    return RunProbes(str(uid), digest.digest())


@repeat_if_lost
def copy_probes(database: Database, source: RunProbes, run: int) -> bool:
    """Give a new run the probes of an earlier one.

    Args:
        database: The database of the store.
        source: The earlier run, and its probes at that time.
        run: The number of the new run, which has no probes.

    Returns:
        False if the earlier run is gone or has other probes; the new run then has none.

    Raises:
        EnvironmentFailedError: A row is damaged.
    """
    columns = ("run", "place", "definitions", "answer_keys")
    with database.write() as connection:
        announce_insert(connection, "definitions")
        found = connection.rows("SELECT id FROM runs WHERE uid = ?", (source.uid,))
        number = found[0][0] if found else None
        digest, after = hashlib.sha256(), -1
        while number is not None and (rows := _page(connection, database.name, number, after)):
            copies = [(run, row.place, row.definitions, _copied_keys(run, row)) for row in rows]
            insert_new(connection, "probes", columns, copies)
            for row in rows:
                _add(digest, row)
            after = rows[-1].place
        is_same = number is not None and digest.digest() == source.digest
        if not is_same:
            connection.roll_back()
    return is_same


def _add(digest: hashlib._Hash, row: ProbeRow) -> None:
    digest.update(row.content)
    digest.update(row.keys)


def _copied_keys(run: int, row: ProbeRow) -> bytes:
    return with_checksum(run, row.place, row.definitions, row.keys)


@repeat_if_lost
def _page_once(database: Database, run: int, after: int) -> list[ProbeRow]:
    with database.read() as connection:
        return _page(connection, database.name, run, after)


def _page(connection: Connection, name: str, run: int, after: int) -> list[ProbeRow]:
    """The next rows after a place."""
    query = (
        "SELECT probes.place, probes.definitions, definitions.digest, probes.answer_keys FROM probes "
        "LEFT JOIN definitions ON definitions.id = probes.definitions "
        "WHERE probes.run = ? AND probes.place > ? ORDER BY probes.place LIMIT ?"
    )
    rows = []
    for place, number, digest, answer_keys in connection.rows(query, (run, after, PAGE)):
        try:
            keys = keys_of_row(run, place, number, bytes(answer_keys))
        except ValueError as error:
            raise damage(name, "probes", place, f"run {run}: {error}") from None
        if digest is None:
            raise damage(name, "probes", place, f"run {run}: its definitions are missing")
        rows.append(ProbeRow(place, number, bytes(digest), keys))
    return rows
