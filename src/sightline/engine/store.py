"""The store: what was asked and answered, remembered once and for all.

SQLite by default (WAL, one short transaction per group of writes), any SQLAlchemy URL else. Attempts
are only ever added. Several processes may use one store at once.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Engine, Table, delete, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.elements import ColumnElement

from sightline.engine import schema
from sightline.engine.connect import connect, display, prepare
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.verdicts import decode_verdict
from sightline.types import Answer, Failure, ImageFile, Verdict

_Name = TypeVar("_Name", str, bytes)

LOOKUP = 500
"""Keys asked for in one statement; every database takes that many parameters."""

LEASE_SECONDS = 5.0
"""How long a claim holds unless it is renewed: what a killed process was asking waits for so long."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt to be remembered: the request's key and canonical JSON, and what came of it."""

    key: str
    request: bytes
    result: Answer | Failure


class Store:
    """One open store. Its methods block shortly; they raise EnvironmentFailedError where the store fails."""

    def __init__(self, engine: Engine, name: str, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self._clock = clock
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._owner = uuid.uuid4().hex

    @classmethod
    def open(cls, url: str, *, create: bool = True, clock: Callable[[], float] = time.time) -> Store:
        """Open the store at a path or URL. `clock` tells the seconds since 1970.

        Raises UserError where it is no store, of a newer schema, or on a network file system; where
        `create` is False, also where it does not exist.
        """
        engine, name = connect(url, create=create), display(url)
        with _failures(name):
            prepare(engine, name)
        return cls(engine, name, clock)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    # Answers

    def look_up(self, keys: Sequence[str]) -> dict[str, Answer | Failure]:
        """What is remembered of these keys: the first answer of each, else its latest failure."""
        found: dict[str, Answer | Failure] = {}
        table = schema.answers
        with self._read() as connection:
            for part in _parts(keys):
                query = (
                    select(table.c.key, table.c.ok, table.c.body)
                    .where(table.c.key.in_(part))
                    .order_by(table.c.id)
                )
                for key, ok, body in connection.execute(query):
                    if not ok:
                        if not isinstance(found.get(key), Answer):
                            found[key] = msgspec.json.decode(body, type=Failure)
                    elif not isinstance(found.get(key), Answer):
                        found[key] = msgspec.json.decode(body, type=Answer)
        return found

    def add_attempts(self, entries: Sequence[Attempt]) -> None:
        """Add attempts in one transaction, which also ends the claims on their keys."""
        now = self._clock()
        with self._write() as connection:
            _insert_new(
                connection,
                schema.requests,
                [{"key": entry.key, "body": entry.request} for entry in entries],
            )
            connection.execute(
                insert(schema.answers),
                [
                    {
                        "key": entry.key,
                        "ok": isinstance(entry.result, Answer),
                        "body": msgspec.json.encode(entry.result),
                        "created": now,
                    }
                    for entry in entries
                ],
            )
            for keys in _parts([entry.key for entry in entries]):
                connection.execute(delete(schema.claims).where(schema.claims.c.key.in_(keys), self._owned))

    def request(self, key: str) -> bytes | None:
        """The canonical JSON of a request that was asked."""
        with self._read() as connection:
            query = select(schema.requests.c.body).where(schema.requests.c.key == key)
            return connection.execute(query).scalar_one_or_none()

    # Claims

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Reserve keys for LEASE_SECONDS; returns those that are reserved for this process now.

        The others are being asked by another process. What was claimed first and looked up then is asked
        by nobody else.
        """
        table, now = schema.claims, self._clock()
        mine: set[str] = set()
        with self._write() as connection:
            connection.execute(delete(table).where(table.c.until < now))
            for part in _parts(keys):
                rows = [{"key": key, "owner": self._owner, "until": now + LEASE_SECONDS} for key in part]
                _insert_new(connection, table, rows)
                mine.update(connection.scalars(select(table.c.key).where(table.c.key.in_(part), self._owned)))
        return mine

    def renew(self) -> None:
        """Hold every claim of this process for another LEASE_SECONDS."""
        until = self._clock() + LEASE_SECONDS
        with self._write() as connection:
            connection.execute(update(schema.claims).where(self._owned).values(until=until))

    def release(self) -> None:
        """Give up every claim of this process."""
        with self._write() as connection:
            connection.execute(delete(schema.claims).where(self._owned))

    # Runs

    def start_run(self, body: Mapping[str, Any]) -> int:
        """Register a run; returns its number."""
        with self._write() as connection:
            result = connection.execute(
                insert(schema.runs).values(body=msgspec.json.encode(body), created=self._clock())
            )
            key = result.inserted_primary_key
        assert key is not None
        return int(key[0])

    def finish_run(self, run: int, body: Mapping[str, Any]) -> None:
        """Mark a run as ended and keep its final description."""
        runs = schema.runs
        with self._write() as connection:
            connection.execute(
                update(runs)
                .where(runs.c.id == run)
                .values(finished=self._clock(), body=msgspec.json.encode(body))
            )

    def drop_run(self, run: int) -> None:
        """Forget a run, its probes and the verdicts given in it; what was answered stays."""
        with self._write() as connection:
            for column in (schema.probes.c.run, schema.verdicts.c.run, schema.runs.c.id):
                connection.execute(delete(column.table).where(column == run))

    def run(self, run: int | None = None) -> tuple[int, dict[str, Any], bool]:
        """The number and description of a run, and whether it ended; by default of the latest that did.

        UserError where there is none.
        """
        runs = schema.runs
        query = select(runs.c.id, runs.c.body, runs.c.finished).order_by(runs.c.id.desc()).limit(1)
        query = query.where(runs.c.id == run) if run is not None else query.where(runs.c.finished.isnot(None))
        with self._read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            what = f"run {run}" if run is not None else "finished run"
            raise UserError(
                f"there is no {what} in this store", file=self.name, expected="one that `report --list` shows"
            )
        return int(row[0]), msgspec.json.decode(row[1]), row[2] is not None

    def runs(self) -> list[tuple[int, dict[str, Any], float, float | None]]:
        """All runs: id, description, when it began and ended (seconds since 1970)."""
        table = schema.runs
        with self._read() as connection:
            query = select(table.c.id, table.c.body, table.c.created, table.c.finished).order_by(table.c.id)
            rows = connection.execute(query).all()
        return [(row[0], msgspec.json.decode(row[1]), row[2], row[3]) for row in rows]

    def add_probes(self, run: int, placed: Sequence[tuple[int, bytes]]) -> None:
        """Add probes of a run, each with its place in the run's order."""
        rows = [{"run": run, "place": place, "body": body} for place, body in placed]
        if rows:
            with self._write() as connection:
                connection.execute(insert(schema.probes), rows)

    def probes(self, run: int) -> Iterator[bytes]:
        """The probes of a run in their order."""
        return self._stream(schema.probes, run, schema.probes.c.place)

    def add_verdicts(self, run: int, verdicts: Sequence[Verdict]) -> None:
        """Add verdicts given in a run."""
        rows = [{"run": run, "body": msgspec.json.encode(verdict)} for verdict in verdicts]
        if rows:
            with self._write() as connection:
                connection.execute(insert(schema.verdicts), rows)

    def verdicts(self, run: int) -> Iterator[Verdict]:
        """The verdicts given in a run, in the order in which they were."""
        for body in self._stream(schema.verdicts, run, schema.verdicts.c.id):
            yield decode_verdict(body)

    # Images

    def image_files(self, paths: Sequence[str]) -> dict[str, ImageFile]:
        """What was seen of these image files before."""
        found: dict[str, ImageFile] = {}
        table = schema.images
        with self._read() as connection:
            for part in _parts(paths):
                query = select(table.c.path, table.c.body).where(table.c.path.in_(part))
                for path, body in connection.execute(query):
                    found[path] = msgspec.json.decode(body, type=ImageFile)
        return found

    def add_image_files(self, files: Sequence[ImageFile]) -> None:
        """Remember what was seen of image files."""
        rows = [{"path": file.path, "body": msgspec.json.encode(file)} for file in files]
        if rows:
            with self._write() as connection:
                for part in _parts(sorted(file.path for file in files)):
                    connection.execute(delete(schema.images).where(schema.images.c.path.in_(part)))
                _insert_new(connection, schema.images, rows)

    # What costs nothing but time

    def vectors(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The vectors that are remembered under these keys (SHA-256 of embedder and text), or the numbers (of
        text metric and texts)."""
        return self._bodies(schema.vectors, keys)

    def add_vectors(self, vectors: Mapping[bytes, bytes]) -> None:
        """Remember vectors."""
        self._add_bodies(schema.vectors, vectors)

    def readings(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The readings that are remembered under these keys (SHA-256 of reader and image digest)."""
        return self._bodies(schema.readings, keys)

    def add_readings(self, readings: Mapping[bytes, bytes]) -> None:
        """Remember readings."""
        self._add_bodies(schema.readings, readings)

    def _bodies(self, table: Table, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self._read() as connection:
            for part in _parts(keys):
                query = select(table.c.key, table.c.body).where(table.c.key.in_(part))
                found.update((bytes(key), bytes(body)) for key, body in connection.execute(query))
        return found

    def _add_bodies(self, table: Table, bodies: Mapping[bytes, bytes]) -> None:
        rows = [{"key": key, "body": body} for key, body in bodies.items()]
        if rows:
            with self._write() as connection:
                _insert_new(connection, table, rows)

    def _stream(self, table: Table, run: int, order: Any, page: int = 2000) -> Iterator[bytes]:
        last = -1
        while True:
            with self._read() as connection:
                query = (
                    select(order, table.c.body).where(table.c.run == run, order > last).order_by(order)
                ).limit(page)
                rows: Sequence[Any] = connection.execute(query).all()
            for row in rows:
                yield row[1]
            if len(rows) < page:
                return
            last = rows[-1][0]

    @property
    def _owned(self) -> ColumnElement[bool]:
        return schema.claims.c.owner == self._owner

    @contextlib.contextmanager
    def _read(self) -> Iterator[Connection]:
        with _failures(self.name), self._engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def _write(self) -> Iterator[Connection]:
        with _failures(self.name), self._writer.begin() as connection:
            yield connection


def _insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows whose primary key is not there yet; leave the others as they are.

    In the order of the key: two writers in different orders could wait for each other in PostgreSQL.
    """
    key = table.primary_key.columns[0].name
    rows = sorted(rows, key=itemgetter(key))
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as insert_postgres

        connection.execute(insert_postgres(table).on_conflict_do_nothing(), rows)
    else:
        connection.execute(insert(table).prefix_with("OR IGNORE", dialect="sqlite"), rows)


def _parts(names: Sequence[_Name]) -> Iterator[Sequence[_Name]]:
    return (names[start : start + LOOKUP] for start in range(0, len(names), LOOKUP))


@contextlib.contextmanager
def _failures(name: str) -> Iterator[None]:
    """A database that fails is a failure of the environment, told without the statement or its values."""
    try:
        yield
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise EnvironmentFailedError(
            f"the store {name} failed: {reason}. Everything committed before is kept; "
            "make room or repair the disk, then run the same command again"
        ) from None
