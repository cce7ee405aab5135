"""Runs in the store: their descriptions, probes and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Table, delete, insert, select, update

from sightline.engine import schema
from sightline.engine.database import Database
from sightline.engine.database_errors import repeat_if_lost
from sightline.errors import UserError
from sightline.formats.verdicts import decode_verdict
from sightline.types import Verdict


class Runs:
    """All runs of the store. Use it as `store.runs`."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Prepare it; nothing is read yet.

        Args:
            database: The database of the store.
            clock: Returns the seconds since 1970.
        """
        self._database = database
        self._clock = clock

    @repeat_if_lost
    def start(self, body: Mapping[str, Any]) -> int:
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

    @repeat_if_lost
    def finish(self, run: int, body: Mapping[str, Any]) -> None:
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

    @repeat_if_lost
    def drop(self, run: int) -> None:
        """Delete a run with its probes and verdicts; its answers stay.

        Args:
            run: Its number.
        """
        with self._database.write() as connection:
            for column in (schema.probes.c.run, schema.verdicts.c.run, schema.runs.c.id):
                connection.execute(delete(column.table).where(column == run))

    @repeat_if_lost
    def get(self, run: int) -> tuple[dict[str, Any], bool]:
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
                f"there is no run {run} in this store",
                file=self._database.name,
                expected="a run of `report --list`",
            )
        return msgspec.json.decode(row[0]), row[1] is not None

    @repeat_if_lost
    def all(self) -> list[tuple[int, dict[str, Any], float, float | None]]:
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
