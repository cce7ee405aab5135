"""Runs in the store: their descriptions, probes and verdicts."""

from __future__ import annotations

import hashlib
import uuid
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sightline.engine.connection import Connection
from sightline.engine.database import Database, announce_insert, insert, insert_new, row_lock, rows_in
from sightline.engine.database_errors import damage, repeat_if_lost
from sightline.engine.dictionaries import PLAIN, Dictionaries
from sightline.engine.existing_run import deleted_run, no_run
from sightline.engine.probe_chunks import ProbeChunk, as_chunk, probes_of
from sightline.engine.run_leases import hold
from sightline.formats.verdicts import decode_verdict
from sightline.types import Verdict

PROBES_PER_CHUNK = 256
"""The most probes of a chunk."""
PAGE = 4
"""The chunks that are read together."""

_CHECKSUM_BYTES = 4
_LARGEST_NUMBER = 2**63 - 1
"""A larger number is none of a database."""
_ROWS = "SELECT id, body, created, finished FROM runs"


class RunRow(Struct, frozen=True):
    """A run as the table has it: number, encoded description, start and end (seconds since 1970)."""

    number: int
    body: bytes
    created: float
    finished: float | None


class Runs:
    """All runs of the store. Use it as `store.runs`."""

    def __init__(
        self,
        database: Database,
        dictionaries: Dictionaries,
        clock: Callable[[], float],
        uptime: Callable[[], float],
    ) -> None:
        """Prepare it; nothing is read yet.

        Args:
            clock: Returns the seconds since 1970.
            uptime: Returns the seconds since the machine started, for leases.
        """
        self._database = database
        self._dictionaries = dictionaries
        self._clock = clock
        self._uptime = uptime

    def start(self, body: Mapping[str, Any], *, held: bool = False) -> int:
        """Register a run."""
        return self._start_once(msgspec.json.encode(body), uuid.uuid4().hex, self._clock(), held=held)

    @repeat_if_lost
    def _start_once(self, body: bytes, uid: str, created: float, *, held: bool) -> int:
        """Register a run that a lost attempt may have registered already."""
        with self._database.write() as connection:
            found = connection.rows("SELECT id FROM runs WHERE uid = ?", (uid,))
            if not found:
                add = "INSERT INTO runs (body, created, uid) VALUES (?, ?, ?) RETURNING id"
                found = connection.rows(add, (body, created, uid))
            run = int(found[0][0])
            if held:
                hold(connection, run, self._uptime)
        return run

    @repeat_if_lost
    def finish(self, run: int, body: Mapping[str, Any]) -> None:
        """Mark a run as finished."""
        query = "UPDATE runs SET finished = ?, body = ? WHERE id = ?"
        with self._database.write() as connection:
            finished = connection.change(query, (self._clock(), msgspec.json.encode(body), run))
        if not finished:
            raise deleted_run(run, self._database.name)

    @repeat_if_lost
    def drop(self, run: int) -> None:
        """Delete a run with its probes, verdicts and labels; its answers stay. Its number is not used again."""
        with self._database.write() as connection:
            # Who refers to the run meanwhile either waits and finds none, or is waited for.
            connection.rows(f"SELECT id FROM runs WHERE id = ? {row_lock(connection, 'FOR UPDATE')}", (run,))
            for table in ("probes", "verdicts", "run_labels", "run_tags", "run_leases"):
                connection.change(f"DELETE FROM {table} WHERE run = ?", (run,))
            connection.change("DELETE FROM runs WHERE id = ?", (run,))

    @repeat_if_lost
    def get(self, run: int) -> tuple[dict[str, Any], bool]:
        row = self.row(run)
        return self.description(row), row.finished is not None

    @repeat_if_lost
    def row(self, run: int) -> RunRow:
        """Look up the row of a run. Its description is not decoded."""
        if run > _LARGEST_NUMBER:
            raise no_run(run, self._database.name)
        with self._database.read() as connection:
            found = connection.rows(f"{_ROWS} WHERE id = ?", (run,))
        if not found:
            raise no_run(run, self._database.name)
        return RunRow(*found[0])

    @repeat_if_lost
    def all(self) -> list[RunRow]:
        """List all runs. Their descriptions are not decoded, so that a damaged one does not hide the others."""
        with self._database.read() as connection:
            rows = connection.rows(f"{_ROWS} ORDER BY id")
        return [RunRow(*row) for row in rows]

    def description(self, row: RunRow) -> dict[str, Any]:
        """Decode the description of a run."""
        return self._decode(row.number, row.body)

    @repeat_if_lost
    def add_probes(self, run: int, numbered: Sequence[tuple[int, bytes]]) -> None:
        """Add probes of a run; a chunk that the run has stays."""
        with self._database.write() as connection:
            for start in range(0, len(numbered), PROBES_PER_CHUNK):
                write_chunk(connection, self._dictionaries, run, numbered[start : start + PROBES_PER_CHUNK])

    def probes(self, run: int) -> Iterator[bytes]:
        """Read the probes of a run: those of `numbered_probes` without their positions."""
        return (body for _, body in self.numbered_probes(run))

    def numbered_probes(self, run: int) -> Iterator[tuple[int, bytes]]:
        held: list[tuple[int, bytes]] = []
        for chunk in self.chunks(run):
            # Chunks may overlap: samples with the same image are planned together.
            ready = bisect_left(held, (chunk.first,))
            yield from held[:ready]
            held = sorted([*held[ready:], *self._probes_of(run, chunk)])
        yield from held

    def chunks(self, run: int, after: int = -1) -> Iterator[ProbeChunk]:
        while page := self._page(run, after):
            yield from page
            after = page[-1].first

    @repeat_if_lost
    def _page(self, run: int, last: int) -> list[ProbeChunk]:
        """The next chunks after a position."""
        query = (
            "SELECT probes.place, probes.answer_keys, definitions.id, definitions.body FROM probes "
            "LEFT JOIN definitions ON definitions.id = probes.definitions "
            "WHERE probes.run = ? AND probes.place > ? ORDER BY probes.place LIMIT ?"
        )
        chunks = []
        with self._database.read() as connection:
            for place, keys, row, body in connection.rows(query, (run, last, PAGE)):
                if body is None:
                    reason = f"run {run}: its definitions are missing"
                    raise damage(self._database.name, "probes", place, reason)
                content = self._dictionaries.decompress(connection, body, "definitions", row)
                try:
                    chunks.append(ProbeChunk(place, content, keys_of_row(run, place, row, keys)))
                except (ValueError, TypeError) as error:
                    reason = f"run {run}: {error}"
                    raise damage(self._database.name, "probes", place, reason) from None
        return chunks

    def add_verdicts(self, run: int, verdicts: Sequence[Verdict]) -> None:
        rows = [(run, msgspec.json.encode(verdict)) for verdict in verdicts]
        if rows:
            self._add_once(rows, after=self._last_verdict(run))

    @repeat_if_lost
    def _last_verdict(self, run: int) -> int:
        with self._database.read() as connection:
            return _last_verdict(connection, run)

    @repeat_if_lost
    def _add_once(self, rows: Sequence[tuple[int, bytes]], after: int) -> None:
        """Add verdicts of a run. Only one process adds to a run: later ones are those of a lost attempt."""
        with self._database.write() as connection:
            if _last_verdict(connection, rows[0][0]) == after:
                insert(connection, "verdicts", ("run", "body"), rows)

    def verdicts(self, run: int) -> Iterator[Verdict]:
        query = "SELECT id, body FROM verdicts WHERE run = ? AND id > ? ORDER BY id LIMIT 2000"
        last = -1
        while True:
            with self._database.read() as connection:
                rows = connection.rows(query, (run, last))
            yield from (self._verdict(*row) for row in rows)
            if not rows:
                return
            last = rows[-1][0]

    def _decode(self, run: int, body: bytes) -> dict[str, Any]:
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
            raise damage(self._database.name, "runs", run, str(error)) from None

    def _verdict(self, row: int, body: bytes) -> Verdict:
        try:
            return decode_verdict(body)
        except (ValueError, TypeError) as error:
            raise damage(self._database.name, "verdicts", row, str(error)) from None

    def _probes_of(self, run: int, chunk: ProbeChunk) -> list[tuple[int, bytes]]:
        try:
            return probes_of(chunk)
        except ValueError as error:
            reason = f"run {run}: {error}"
            raise damage(self._database.name, "probes", chunk.first, reason) from None


def _last_verdict(connection: Connection, run: int) -> int:
    """The number of the latest verdict of a run; 0 without any."""
    return connection.rows("SELECT max(id) FROM verdicts WHERE run = ?", (run,))[0][0] or 0


def write_chunk(
    connection: Connection, dictionaries: Dictionaries, run: int, numbered: Sequence[tuple[int, bytes]]
) -> None:
    """Write a chunk of the probes of a run, and its definitions, if the store does not have them."""
    chunk = as_chunk(numbered)
    announce_insert(connection, "definitions")
    digest = hashlib.sha256(chunk.definitions).digest()
    query = "SELECT id FROM definitions WHERE digest IN ({})"
    found = list(rows_in(connection, query, [digest]))
    if not found:
        body = dictionaries.compress(connection, chunk.definitions, PLAIN)
        insert_new(connection, "definitions", ("digest", "body"), [(digest, body)])
        found = list(rows_in(connection, query, [digest]))
    place, definitions = chunk.first, int(found[0][0])
    row = (run, place, definitions, with_checksum(run, place, definitions, chunk.keys))
    insert_new(connection, "probes", ("run", "place", "definitions", "answer_keys"), [row])


def with_checksum(run: int, place: int, definitions: int, keys: bytes) -> bytes:
    """What a row holds of the keys of a chunk; the inverse of `keys_of_row`."""
    return keys + _checksum(run, place, definitions, keys)


def keys_of_row(run: int, place: int, definitions: int, answer_keys: bytes) -> bytes:
    """The keys of a chunk, after a check of its row: damage would lead to other answers.

    Raises:
        ValueError: The checksum is wrong.
    """
    keys = answer_keys[:-_CHECKSUM_BYTES]
    if _checksum(run, place, definitions, keys) != answer_keys[-_CHECKSUM_BYTES:]:
        raise ValueError("the checksum is wrong")
    return keys


def _checksum(run: int, place: int, definitions: int, keys: bytes) -> bytes:
    of_numbers = zlib.crc32(f"{run} {place} {definitions}".encode())
    return zlib.crc32(keys, of_numbers).to_bytes(_CHECKSUM_BYTES, "big")
