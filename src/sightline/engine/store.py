"""The store: the cache of all answers, and the record of runs, probes, verdicts and image metadata.

SQLite by default (write-ahead log, one short transaction per group of writes), or any SQLAlchemy URL.
Attempts are only added, never changed. Several processes may use one store at the same time.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Engine, Table, delete, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from sightline.engine import schema
from sightline.engine.connect import connect, display, prepare
from sightline.engine.database import Database, check_connection, database_errors, insert_new, parts
from sightline.engine.endpoint_log import EndpointLog
from sightline.errors import UserError
from sightline.formats.verdicts import decode_verdict
from sightline.types import Answer, Failure, ImageFile, Verdict

LEASE_SECONDS = 5.0
"""How long a claim holds without renewal. Requests of a killed process become free after this time."""


class Attempt(msgspec.Struct, frozen=True):
    """One call to be stored: the request's key and canonical JSON, and its result."""

    key: str
    request: bytes
    result: Answer | Failure


class Store:
    """One open store. Its methods block; each raises EnvironmentFailedError if the database fails."""

    def __init__(self, engine: Engine, name: str, clock: Callable[[], float] = time.time) -> None:
        """Prepare the store; `Store.open` connects and checks it.

        Args:
            engine: The database engine of a prepared store.
            name: The store's name in messages.
            clock: Returns the seconds since 1970.
        """
        self.name = name
        self._clock = clock
        self._database = Database(engine, name)
        self._owner = uuid.uuid4().hex
        self.endpoints = EndpointLog(self._database, clock)

    @classmethod
    def open(cls, url: str, *, create: bool = True, clock: Callable[[], float] = time.time) -> Store:
        """Open a store.

        Args:
            url: A path or a database URL.
            create: Whether a store that does not exist is created.
            clock: Returns the seconds since 1970.

        Returns:
            The store.

        Raises:
            UserError: The path or URL holds no store or a newer schema, or SQLite is on a network file
                system.
        """
        engine, name = connect(url, create=create), display(url)
        check_connection(engine, name)
        with database_errors(name):
            prepare(engine, name)
        return cls(engine, name, clock)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    # Answers

    def look_up(self, keys: Sequence[str]) -> dict[str, Answer | Failure]:
        """Look up requests.

        Args:
            keys: Request keys.

        Returns:
            Key -> its first answer, or its latest failure if it has no answer; keys without an attempt are
            missing.
        """
        results: dict[str, Answer | Failure] = {}
        table = schema.answers
        with self._database.read() as connection:
            for part in parts(keys):
                query = (
                    select(table.c.key, table.c.ok, table.c.body)
                    .where(table.c.key.in_(part))
                    .order_by(table.c.id)
                )
                for key, ok, body in connection.execute(query):
                    if not ok:
                        if not isinstance(results.get(key), Answer):
                            results[key] = msgspec.json.decode(body, type=Failure)
                    elif not isinstance(results.get(key), Answer):
                        results[key] = msgspec.json.decode(body, type=Answer)
        return results

    def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Add attempts in one transaction, which also ends the claims on their keys.

        Args:
            attempts: The attempts.
        """
        now = self._clock()
        with self._database.write() as connection:
            insert_new(
                connection,
                schema.requests,
                [{"key": attempt.key, "body": attempt.request} for attempt in attempts],
            )
            identities = {schema.model_of(attempt.request) for attempt in attempts}
            insert_new(connection, schema.models, [{"identity": identity} for identity in identities])
            connection.execute(
                insert(schema.answers),
                [
                    {
                        "key": attempt.key,
                        "ok": isinstance(attempt.result, Answer),
                        "body": msgspec.json.encode(attempt.result),
                        "created": now,
                    }
                    for attempt in attempts
                ],
            )
            for keys in parts([attempt.key for attempt in attempts]):
                connection.execute(delete(schema.claims).where(schema.claims.c.key.in_(keys), self._owned))

    def request(self, key: str) -> bytes | None:
        """Look up a request.

        Args:
            key: Its key.

        Returns:
            Its canonical JSON; None if the store has no attempt of it.
        """
        with self._database.read() as connection:
            query = select(schema.requests.c.body).where(schema.requests.c.key == key)
            return connection.execute(query).scalar_one_or_none()

    # Claims

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Reserve requests for this process for LEASE_SECONDS.

        Look them up again after the claim: another process may have answered them in between.

        Args:
            keys: Request keys.

        Returns:
            The keys that this process may send; another process is sending the others.
        """
        table, now = schema.claims, self._clock()
        mine: set[str] = set()
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.until < now))
            for part in parts(keys):
                rows = [{"key": key, "owner": self._owner, "until": now + LEASE_SECONDS} for key in part]
                insert_new(connection, table, rows)
                mine.update(connection.scalars(select(table.c.key).where(table.c.key.in_(part), self._owned)))
        return mine

    def renew(self) -> None:
        """Renew every claim of this process for another LEASE_SECONDS."""
        until = self._clock() + LEASE_SECONDS
        with self._database.write() as connection:
            connection.execute(update(schema.claims).where(self._owned).values(until=until))

    def release(self) -> None:
        """Give up every claim of this process."""
        with self._database.write() as connection:
            connection.execute(delete(schema.claims).where(self._owned))

    # Runs

    def start_run(self, body: Mapping[str, Any]) -> int:
        """Register a run.

        Args:
            body: Its description.

        Returns:
            Its number.
        """
        with self._database.write() as connection:
            result = connection.execute(
                insert(schema.runs).values(body=msgspec.json.encode(body), created=self._clock())
            )
            key = result.inserted_primary_key
        assert key is not None
        return int(key[0])

    def finish_run(self, run: int, body: Mapping[str, Any]) -> None:
        """Mark a run as finished.

        Args:
            run: Its number.
            body: Its final description.
        """
        runs = schema.runs
        with self._database.write() as connection:
            connection.execute(
                update(runs)
                .where(runs.c.id == run)
                .values(finished=self._clock(), body=msgspec.json.encode(body))
            )

    def drop_run(self, run: int) -> None:
        """Delete a run with its probes and verdicts; its answers stay.

        Args:
            run: Its number.
        """
        with self._database.write() as connection:
            for column in (schema.probes.c.run, schema.verdicts.c.run, schema.runs.c.id):
                connection.execute(delete(column.table).where(column == run))

    def run(self, run: int) -> tuple[dict[str, Any], bool]:
        """Look up a run.

        Args:
            run: Its number.

        Returns:
            Its description, and whether it is finished.

        Raises:
            UserError: There is no such run.
        """
        runs = schema.runs
        query = select(runs.c.body, runs.c.finished).where(runs.c.id == run)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise UserError(
                f"there is no run {run} in this store", file=self.name, expected="a run of `report --list`"
            )
        return msgspec.json.decode(row[0]), row[1] is not None

    def runs(self) -> list[tuple[int, dict[str, Any], float, float | None]]:
        """List all runs.

        Returns:
            Number, description, start and end (seconds since 1970; None while it is not finished) of each.
        """
        table = schema.runs
        with self._database.read() as connection:
            query = select(table.c.id, table.c.body, table.c.created, table.c.finished).order_by(table.c.id)
            rows = connection.execute(query).all()
        return [(row[0], msgspec.json.decode(row[1]), row[2], row[3]) for row in rows]

    def add_probes(self, run: int, numbered: Sequence[tuple[int, bytes]]) -> None:
        """Add probes of a run.

        Args:
            run: Its number.
            numbered: The position of each probe in the run, and the encoded probe.
        """
        rows = [{"run": run, "position": position, "body": body} for position, body in numbered]
        if rows:
            with self._database.write() as connection:
                connection.execute(insert(schema.probes), rows)

    def probes(self, run: int) -> Iterator[bytes]:
        """Read the probes of a run.

        Args:
            run: Its number.

        Returns:
            The encoded probes in their order.
        """
        return self._stream(schema.probes, run, schema.probes.c.position)

    def add_verdicts(self, run: int, verdicts: Sequence[Verdict]) -> None:
        """Add verdicts of a run.

        Args:
            run: Its number.
            verdicts: The verdicts.
        """
        rows = [{"run": run, "body": msgspec.json.encode(verdict)} for verdict in verdicts]
        if rows:
            with self._database.write() as connection:
                connection.execute(insert(schema.verdicts), rows)

    def verdicts(self, run: int) -> Iterator[Verdict]:
        """Read the verdicts of a run.

        Args:
            run: Its number.

        Yields:
            The verdicts in the order in which they were added.
        """
        for body in self._stream(schema.verdicts, run, schema.verdicts.c.id):
            yield decode_verdict(body)

    # Images

    def image_files(self, paths: Sequence[str]) -> dict[str, ImageFile]:
        """Look up metadata of image files.

        Args:
            paths: Paths of images.

        Returns:
            Path -> metadata, for the files that were inspected before.
        """
        found: dict[str, ImageFile] = {}
        table = schema.images
        with self._database.read() as connection:
            for part in parts(paths):
                query = select(table.c.path, table.c.body).where(table.c.path.in_(part))
                for path, body in connection.execute(query):
                    found[path] = msgspec.json.decode(body, type=ImageFile)
        return found

    def add_image_files(self, files: Sequence[ImageFile]) -> None:
        """Store metadata of image files.

        Args:
            files: The metadata; it replaces older metadata of the same path.
        """
        rows = [{"path": file.path, "body": msgspec.json.encode(file)} for file in files]
        if rows:
            with self._database.write() as connection:
                for part in parts(sorted(file.path for file in files)):
                    connection.execute(delete(schema.images).where(schema.images.c.path.in_(part)))
                insert_new(connection, schema.images, rows)

    # Caches that may be dropped

    def vectors(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up text vectors, or the values of text metrics.

        Args:
            keys: SHA-256 of embedder and text, or of metric and texts.

        Returns:
            Key -> 32-bit floats of the vector, or one 64-bit float of the metric, little-endian.
        """
        return self._database.bodies(schema.vectors, keys)

    def add_vectors(self, vectors: Mapping[bytes, bytes]) -> None:
        """Store text vectors, or values of text metrics.

        Args:
            vectors: As `vectors` returns them.
        """
        self._database.add_bodies(schema.vectors, vectors)

    def readings(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up OCR results.

        Args:
            keys: SHA-256 of OCR reader and image.

        Returns:
            Key -> the words as JSON.
        """
        return self._database.bodies(schema.readings, keys)

    def add_readings(self, readings: Mapping[bytes, bytes]) -> None:
        """Store OCR results.

        Args:
            readings: As `readings` returns them.
        """
        self._database.add_bodies(schema.readings, readings)

    def _stream(self, table: Table, run: int, order: Any, page: int = 2000) -> Iterator[bytes]:
        last = -1
        while True:
            with self._database.read() as connection:
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
