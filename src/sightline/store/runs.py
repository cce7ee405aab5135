"""Runs in the store: their descriptions, probes, verdicts, and labels."""

from __future__ import annotations

import hashlib
import re
import uuid
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from sightline.errors import EnvironmentFailedError, NoSuchRecordError
from sightline.formats.jsonl import decode_verdict
from sightline.store.answers import PLAIN, Dictionaries, storable_text
from sightline.store.claims import Claims
from sightline.store.connect import connect
from sightline.store.database import (
    Connection,
    Database,
    announce_insert,
    change_rows_in,
    insert,
    insert_new,
    lock_table,
    row_lock,
    rows_in,
)
from sightline.store.failures import damage, repeat_if_lost
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
        claims: Claims,
        clock: Callable[[], float],
    ) -> None:
        """`clock` is the seconds since 1970."""
        self._database = database
        self._dictionaries = dictionaries
        self._claims = claims
        self._clock = clock

    def start(self, body: Mapping[str, Any], *, held: bool = False) -> int:
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
                self._hold(connection, run)
        return run

    @repeat_if_lost
    def hold(self, run: int) -> None:
        """Show other processes that this one works on a run, as long as it is at work (claims.py)."""
        with self._database.write() as connection:
            require_run(connection, run, self._database.name)
            self._hold(connection, run)

    def _hold(self, connection: Connection, run: int) -> None:
        self._claims.sign(connection)
        connection.change("UPDATE runs SET worker = ? WHERE id = ?", (self._claims.name, run))

    @repeat_if_lost
    def release(self, run: int) -> None:
        with self._database.write() as connection:
            connection.change("UPDATE runs SET worker = NULL WHERE id = ?", (run,))

    @repeat_if_lost
    def finish(self, run: int, body: Mapping[str, Any]) -> None:
        query = "UPDATE runs SET finished = ?, body = ? WHERE id = ?"
        with self._database.write() as connection:
            finished = connection.change(query, (self._clock(), msgspec.json.encode(body), run))
        if not finished:
            raise deleted_run(run, self._database.name)

    @repeat_if_lost
    def drop(self, run: int) -> None:
        """Delete a run with probes, verdicts and labels; answers stay, its number is not used again."""
        with self._database.write() as connection:
            # Who refers to the run meanwhile either waits and finds none, or is waited for.
            connection.rows(f"SELECT id FROM runs WHERE id = ? {row_lock(connection, 'FOR UPDATE')}", (run,))
            for table in ("probes", "verdicts", "run_labels", "run_tags"):
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
        """List all runs, not decoded, so that a damaged one does not hide the others."""
        with self._database.read() as connection:
            rows = connection.rows(f"{_ROWS} ORDER BY id")
        return [RunRow(*row) for row in rows]

    def description(self, row: RunRow) -> dict[str, Any]:
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
    """The keys of a chunk. ValueError if the checksum is wrong: damage would lead to other answers."""
    keys = answer_keys[:-_CHECKSUM_BYTES]
    if _checksum(run, place, definitions, keys) != answer_keys[-_CHECKSUM_BYTES:]:
        raise ValueError("the checksum is wrong")
    return keys


def _checksum(run: int, place: int, definitions: int, keys: bytes) -> bytes:
    of_numbers = zlib.crc32(f"{run} {place} {definitions}".encode())
    return zlib.crc32(keys, of_numbers).to_bytes(_CHECKSUM_BYTES, "big")


# -- Names, tags and notes of runs in the store. Users change them, while a run stays as it is


class Labels(Struct, frozen=True):
    """What the user says about a run: its name, its tags in the order of the alphabet, a note."""

    name: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""


class RunLabels:
    """The labels of all runs of the store. Use it as `store.labels`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @repeat_if_lost
    def all(self) -> dict[int, Labels]:
        tags = defaultdict[int, list[str]](list)
        with self._database.read() as connection:
            for run, tag in connection.rows("SELECT run, tag FROM run_tags ORDER BY tag"):
                tags[run].append(tag)
            labels = connection.rows("SELECT run, name, note FROM run_labels")
        rows = {run: (name, note) for run, name, note in labels}
        found = {}
        for run in sorted({*tags, *rows}):
            name, note = rows.get(run, (None, ""))
            found[run] = Labels(name, tuple(tags[run]), note)
        return found

    def of(self, run: int) -> Labels:
        return self.all().get(run, Labels())

    @repeat_if_lost
    def names(self) -> dict[str, int]:
        with self._database.read() as connection:
            return dict(connection.rows("SELECT name, run FROM run_labels WHERE name IS NOT NULL"))

    @repeat_if_lost
    def give_name(self, run: int, name: str, instead_of: int | None = None) -> int:
        """Give a run a name, unless another run has it. The former name of the run becomes free."""
        with self._changing(run) as connection:
            # Otherwise two processes could both find that nobody has the name.
            lock_table(connection, "run_labels", "SHARE ROW EXCLUSIVE")
            for (holder,) in connection.rows("SELECT run FROM run_labels WHERE name = ?", (name,)):
                if holder not in (run, instead_of):
                    return int(holder)
                _set_name(connection, holder, None)
            _set_name(connection, run, name)
        return run

    @repeat_if_lost
    def remove_name(self, run: int) -> None:
        with self._changing(run) as connection:
            _set_name(connection, run, None)

    @repeat_if_lost
    def set_note(self, run: int, note: str) -> None:
        """Replace the note of a run; '' for none."""
        with self._changing(run) as connection:
            _add_row(connection, run)
            connection.change("UPDATE run_labels SET note = ? WHERE run = ?", (storable_text(note), run))

    @repeat_if_lost
    def add_tags(self, run: int, tags: Sequence[str]) -> None:
        with self._changing(run) as connection:
            insert_new(connection, "run_tags", ("run", "tag"), [(run, tag) for tag in sorted(set(tags))])

    @repeat_if_lost
    def remove_tags(self, run: int, tags: Sequence[str]) -> None:
        with self._database.write() as connection:
            change_rows_in(connection, "DELETE FROM run_tags WHERE run = {} AND tag IN ({})", (run,), tags)

    @contextmanager
    def _changing(self, run: int) -> Iterator[Connection]:
        with self._database.write() as connection:
            require_run(connection, run, self._database.name)
            yield connection


def names_of_runs(url: str) -> list[str]:
    """Read the names of runs, as the completion of a shell needs them; no store is made."""
    database = connect(url, create=False)
    try:
        database.check_connection()
        with database.read() as connection:
            return sorted(name for (name,) in connection.rows("SELECT name FROM run_labels") if name)
    finally:
        database.close()


def _set_name(connection: Connection, run: int, name: str | None) -> None:
    _add_row(connection, run)
    connection.change("UPDATE run_labels SET name = ? WHERE run = ?", (name, run))


def _add_row(connection: Connection, run: int) -> None:
    # Several processes may set labels of one run at once: all but the first find its row.
    insert_new(connection, "run_labels", ("run", "note"), [(run, "")])


# -- The check that a run exists, before something of it is written


def is_there(connection: Connection, run: int) -> bool:
    """Find out whether a run exists. One that exists stays until the end of the transaction."""
    query = f"SELECT id FROM runs WHERE id = ? {row_lock(connection, 'FOR KEY SHARE')}"
    return bool(connection.rows(query, (run,)))


def require_run(connection: Connection, run: int, name: str) -> None:
    """Refuse a run that does not exist, before something refers to it."""
    if not is_there(connection, run):
        raise no_run(run, name)


def no_run(run: int, name: str) -> NoSuchRecordError:
    return NoSuchRecordError(
        f"there is no run {run} in this store", file=name, expected="a run of `sightline runs list`"
    )


def deleted_run(run: int, name: str) -> EnvironmentFailedError:
    """Make the error of a run that somebody deleted while it was written."""
    return EnvironmentFailedError(
        f"run {run} of the store {name} was deleted while it was written. Its answers are kept; run the same "
        "command again"
    )


# -- Chunks of the probes of a run: what the probes are, apart from the keys of their answers

KEY_BYTES = 32
"""The bytes of a request key."""

_KEY = re.compile(rb'"key":"([0-9a-f]{64})"')
_HOLE = b"\0"
"""Stands for a key in the definitions. JSON cannot contain this byte."""


class ProbeChunk(NamedTuple):
    """Some probes of a run, in the order of their positions.

    `first` is the position of the first one. `definitions` holds a line of the distances between positions,
    and the JSON of each probe in a line. `keys` are the keys, of partners too, in the order of the holes.
    """

    first: int
    definitions: bytes
    keys: bytes


def as_chunk(numbered: Sequence[tuple[int, bytes]]) -> ProbeChunk:
    ordered = sorted(numbered)
    distances = (later - earlier for (earlier, _), (later, _) in pairwise(ordered))
    pieces = _KEY.split(b"\n".join(body for _, body in ordered))
    positions = ",".join(map(str, distances)).encode()
    keys = bytes.fromhex(b"".join(pieces[1::2]).decode())
    return ProbeChunk(ordered[0][0], positions + b"\n" + _HOLE.join(pieces[::2]), keys)


def split_keys(keys: bytes) -> list[bytes]:
    return [keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)]


def own_keys(chunk: ProbeChunk) -> list[bytes]:
    lines = chunk.definitions.split(b"\n")[1:]
    keys, at = [], 0
    for line in lines:
        keys.append(chunk.keys[at * KEY_BYTES : (at + 1) * KEY_BYTES])
        at += line.count(_HOLE)
    return keys


def probes_of(chunk: ProbeChunk) -> list[tuple[int, bytes]]:
    """The inverse of `as_chunk`. ValueError if the keys are not those of the definitions."""
    distances, _, definitions = chunk.definitions.partition(b"\n")
    before, *others = definitions.split(_HOLE)
    keys = chunk.keys.hex().encode()
    if len(keys) != 2 * KEY_BYTES * len(others):
        raise ValueError(f"it has {len(chunk.keys)} bytes of keys for {len(others)} answers")
    pieces = [before]
    for start, after in zip(range(0, len(keys), 2 * KEY_BYTES), others, strict=True):
        pieces += (b'"key":"', keys[start : start + 2 * KEY_BYTES], b'"', after)
    bodies = b"".join(pieces).split(b"\n")
    steps = map(int, distances.split(b",")) if distances else ()
    return list(zip(accumulate(steps, initial=chunk.first), bodies, strict=True))
