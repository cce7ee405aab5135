"""What the store holds about endpoints: checks, and reports of servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from sightline.engine.connection import Connection
from sightline.engine.database import Database, insert_new
from sightline.engine.database_errors import damage, repeat_if_lost
from sightline.engine.request_parts import model_of
from sightline.engine.storable import storable_text
from sightline.models.server_report import ServerReport

CheckResult = Literal["first contact", "same", "changed", "unsure", "incomplete", "by name", "not checked"]


class EndpointRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check of an endpoint, or its first contact.

    Attributes:
        report: What the server reports about itself; None without a report.
    """

    identity: str
    host: str
    result: CheckResult
    detail: str = ""
    asked: int = 0
    report: ServerReport | None = None


def list_models(connection: Connection, requests: Iterable[bytes]) -> None:
    identities = {storable_text(model_of(canonical)) for canonical in requests}
    insert_new(connection, "models", ("identity",), ((identity,) for identity in identities))


class EndpointLog:
    """The endpoints in one open store. Its methods block, like those of the store."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def now(self) -> float:
        """The time of the store's clock.

        Returns:
            Seconds since 1970.
        """
        return self._clock()

    def add(self, record: EndpointRecord) -> None:
        """Add a record; records are never changed."""
        self._add_once(record.identity, msgspec.json.encode(record), self._clock())

    @repeat_if_lost
    def _add_once(self, identity: str, body: bytes, created: float) -> None:
        """Add a record, unless an attempt whose connection was lost added it."""
        row = (storable_text(identity), body, created)
        added = "SELECT id FROM endpoints WHERE identity = ? AND body = ? AND created = ?"
        with self._database.write() as connection:
            if not connection.rows(added, row):
                connection.change("INSERT INTO endpoints (identity, body, created) VALUES (?, ?, ?)", row)

    @repeat_if_lost
    def records(self, identity: str | None = None) -> list[tuple[float, EndpointRecord]]:
        """List records in the order in which they were added.

        Args:
            identity: The identity of a model; None for all.

        Returns:
            The time (seconds since 1970) of each record, and the record.
        """
        of_model = "" if identity is None else "WHERE identity = ?"
        values = () if identity is None else (storable_text(identity),)
        query = f"SELECT id, created, body FROM endpoints {of_model} ORDER BY created, id"
        with self._database.read() as connection:
            rows = connection.rows(query, values)
        return [(created, self._decode(number, body)) for number, created, body in rows]

    def _decode(self, row: int, body: bytes) -> EndpointRecord:
        try:
            return msgspec.json.decode(body, type=EndpointRecord)
        except (ValueError, TypeError) as error:
            raise damage(self._database.name, "endpoints", row, str(error)) from None

    @repeat_if_lost
    def has_requests(self, identity: str) -> bool:
        """Whether the store holds a request to a model."""
        query = "SELECT identity FROM models WHERE identity = ?"
        with self._database.read() as connection:
            return bool(connection.rows(query, (storable_text(identity),)))
