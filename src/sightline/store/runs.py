"""Runs in the store: their descriptions, probes, verdicts, and labels."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from sightline.errors import EnvironmentFailedError, NoSuchRecordError
from sightline.formats.jsonl import decode_verdict
from sightline.store.answers import storable_text
from sightline.store.claims import Claims
from sightline.store.database import (
    Connection,
    Database,
    change_rows_in,
    damage,
    insert,
    insert_new,
    lock_table,
    repeat_if_lost,
    row_lock,
)
from sightline.types import Verdict

PROBES_PER_CHUNK = 256
"""The most probes of a chunk."""
PAGE = 4
"""The chunks that are read together."""

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
        claims: Claims,
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._claims = claims
        self._clock = clock

    def start(self, body: Mapping[str, Any], *, held: bool = False, created: float | None = None) -> int:
        """Register a run that starts now, or that was `created` (seconds since 1970) elsewhere."""
        began = self._clock() if created is None else created
        return self._start_once(msgspec.json.encode(body), uuid.uuid4().hex, began, held=held)

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
        """Add probes of a run, as JSON with their positions; a chunk that the run has stays."""
        with self._database.write() as connection:
            for start in range(0, len(numbered), PROBES_PER_CHUNK):
                chunk = sorted(numbered[start : start + PROBES_PER_CHUNK])
                row = (run, chunk[0][0], encode_probes(chunk))
                insert(connection, "probes", ("run", "place", "body"), [row], "ON CONFLICT DO NOTHING")

    def probes(self, run: int) -> Iterator[bytes]:
        """Read the probes of a run: those of `numbered_probes` without their positions."""
        return (body for _, body in self.numbered_probes(run))

    def numbered_probes(self, run: int) -> Iterator[tuple[int, bytes]]:
        held: list[tuple[int, bytes]] = []
        for chunk in self.chunks(run):
            # Chunks may overlap: samples with the same image are planned together.
            ready = bisect_left(held, (chunk[0][0],))
            yield from held[:ready]
            held = sorted([*held[ready:], *chunk])
        yield from held

    def chunks(self, run: int, after: int = -1) -> Iterator[list[tuple[int, bytes]]]:
        """Read the probes with their positions as they were added, behind the chunk of a position."""
        while page := self._page(run, after):
            yield from page
            after = page[-1][0][0]

    @repeat_if_lost
    def _page(self, run: int, last: int) -> list[list[tuple[int, bytes]]]:
        query = "SELECT place, body FROM probes WHERE run = ? AND place > ? ORDER BY place LIMIT ?"
        with self._database.read() as connection:
            rows = connection.rows(query, (run, last, PAGE))
        return [self._probes(run, *row) for row in rows]

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

    def _probes(self, run: int, place: int, body: bytes) -> list[tuple[int, bytes]]:
        try:
            return decode_probes(place, body)
        except ValueError as error:
            raise damage(self._database.name, "probes", place, f"run {run}: {error}") from None


def _last_verdict(connection: Connection, run: int) -> int:
    """The number of the latest verdict of a run; 0 without any."""
    return connection.rows("SELECT max(id) FROM verdicts WHERE run = ?", (run,))[0][0] or 0


# -- A chunk of the probes of a run: JSON of [position, probe], a line each, compressed

_LEVEL = 6


class DamagedBodyError(ValueError):
    """A compressed body does not have the content that was written."""


def encode_probes(numbered: Sequence[tuple[int, bytes]]) -> bytes:
    return compress(b"\n".join(b"[%d,%b]" % probe for probe in numbered))


def decode_probes(place: int, body: bytes) -> list[tuple[int, bytes]]:
    """The inverse of `encode_probes`. ValueError if it is damaged, or no chunk of this place."""
    numbered = []
    for line in decompress(body).split(b"\n"):
        position, _, probe = line[1:-1].partition(b",")
        numbered.append((int(position), probe))
    if numbered[0][0] != place:
        raise ValueError(f"it begins with the probe at {numbered[0][0]}")
    return numbered


def compress(body: bytes) -> bytes:
    return ZstdCompressor(level=_LEVEL, write_checksum=True).compress(body)


def decompress(body: bytes) -> bytes:
    try:
        return ZstdDecompressor().decompress(body)
    # TypeError: SQLite keeps a value of another type in any column.
    except (ZstdError, MemoryError, TypeError) as error:
        raise DamagedBodyError(str(error)) from None


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
    if not is_there(connection, run):
        raise no_run(run, name)


def no_run(run: int, name: str) -> NoSuchRecordError:
    return NoSuchRecordError(
        f"there is no run {run} in this store", file=name, expected="a run of `sightline runs list`"
    )


def deleted_run(run: int, name: str) -> EnvironmentFailedError:
    return EnvironmentFailedError(
        f"run {run} of the store {name} was deleted while it was written. Its answers are kept; run the same "
        "command again"
    )
