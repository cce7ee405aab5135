"""Whether the rows of a store are sound: they decode, and digests are those of what they name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import RowMapping, Table
from sqlalchemy.engine import Connection as CoreConnection

from sightline.annotation.bodies import DECODERS
from sightline.engine import schema
from sightline.engine.answers import decode_result, state_of
from sightline.engine.caches import check_image_row
from sightline.engine.connection import Connection
from sightline.engine.core_connection import plain
from sightline.engine.database_errors import StoreFailedError
from sightline.engine.dictionaries import PLAIN, Dictionaries
from sightline.engine.endpoint_log import EndpointRecord
from sightline.engine.probe_chunks import KEY_BYTES, ProbeChunk, probes_of
from sightline.engine.requests import Requests
from sightline.engine.runs import keys_of_row
from sightline.engine.texts import text_digest
from sightline.formats.verdicts import decode_verdict
from sightline.maintenance.damaged_tables import LARGEST
from sightline.plan.stored_probe import StoredProbe
from sightline.results.stored_run import StoredRun, decode_run

ANOTHER_CONTENT = "its content is not that of its digest"

TIMES = ("created", "finished", "closed")
"""The columns that hold times, in seconds since 1970."""
LARGEST_TIME = 253402300800.0
"""The first second of the year 10000."""

Row = Mapping[str, Any]


class RowChecks:
    """Checks the rows of one open store."""

    def __init__(self, name: str) -> None:
        """Prepare it; nothing is read yet.

        Args:
            name: The store's name in messages.
        """
        self._dictionaries = Dictionaries(name)
        self._requests = Requests(self._dictionaries)
        self._checks: Mapping[str, Callable[[Connection, Row], str]] = {
            "dictionaries": self._check_dictionary,
            "texts": self._check_text,
            "requests": self._check_request,
            "answers": self._check_answer,
            "definitions": self._check_definitions,
            "probes": self._check_probes,
            "runs": lambda _, row: _undecodable(_decode_run, row["body"]),
            "verdicts": lambda _, row: _undecodable(decode_verdict, row["body"]),
            "batch_requests": lambda _, row: "" if len(row["key"]) == KEY_BYTES else "its key is no SHA-256",
            "endpoints": lambda _, row: _undecodable(_ENDPOINT.decode, row["body"]),
            "images": lambda _, row: _undecodable(check_image_row, row["body"]),
            "vectors": lambda _, row: "" if len(row["body"]) % 4 == 0 else "it is no list of numbers",
            **{table: partial(_check_annotation, decoder) for table, decoder in DECODERS.items()},
            "readings": lambda _, row: _undecodable(msgspec.json.decode, row["body"]),
        }

    def problems(
        self, core: CoreConnection, table: str, rows: Sequence[RowMapping]
    ) -> Iterator[tuple[RowMapping, str]]:
        """Check rows.

        Args:
            core: A connection to the store.
            table: The table that they are of.
            rows: The rows.

        Yields:
            Each row that is wrong, and what is wrong with it.
        """
        columns = schema.metadata.tables[table]
        check = self._checks.get(table, _sound)
        connection = plain(core)
        if table == "requests" and self._are_sound(connection, rows):
            return
        for row in rows:
            try:
                problem = wrong_value(columns, dict(row)) or check(connection, dict(row))
            except StoreFailedError as error:
                problem = error.reason
            if problem:
                yield row, problem

    def _are_sound(self, connection: Connection, rows: Sequence[RowMapping]) -> bool:
        """Whether all of these requests are sound: their texts are read together."""
        if any(wrong_value(schema.requests, dict(row)) for row in rows):
            return False
        try:
            found = self._requests.read(connection, {row["id"]: row["body"] for row in rows})
        except StoreFailedError:
            return False
        return all(_is_canonical(found[row["id"]], row["key"]) for row in rows)

    def _check_request(self, connection: Connection, row: Row) -> str:
        canonical = self._requests.read(connection, {row["id"]: row["body"]})[row["id"]]
        return (
            "" if _is_canonical(canonical, row["key"]) else "its key is not the SHA-256 of its canonical JSON"
        )

    def _check_dictionary(self, connection: Connection, row: Row) -> str:
        if row["id"] == PLAIN:
            return "it has the number of no dictionary"
        self._dictionaries.decompress(connection, row["body"], "dictionaries", row["id"])
        return ""

    def _check_text(self, connection: Connection, row: Row) -> str:
        text = self._dictionaries.decompress(connection, row["body"], "texts", row["id"])
        return "" if text_digest(text) == row["digest"] else ANOTHER_CONTENT

    def _check_answer(self, connection: Connection, row: Row) -> str:
        body = self._dictionaries.decompress(connection, row["body"], "answers", row["id"])
        try:
            result = decode_result(row["state"], body)
        except msgspec.MsgspecError as error:
            return f"it cannot be decoded: {error}"
        return "" if state_of(result) == row["state"] else f"its state {row['state']} is not that of its body"

    def _check_definitions(self, connection: Connection, row: Row) -> str:
        body = self._dictionaries.decompress(connection, row["body"], "definitions", row["id"])
        return "" if hashlib.sha256(body).digest() == row["digest"] else ANOTHER_CONTENT

    def _check_probes(self, connection: Connection, row: Row) -> str:
        number = row["definitions"]
        found = connection.rows("SELECT body FROM definitions WHERE id = ?", (number,))
        if not found:
            return f"its definitions, row {number} of definitions, do not exist"
        body = self._dictionaries.decompress(connection, found[0][0], "definitions", number)
        try:
            keys = keys_of_row(row["run"], row["place"], number, row["answer_keys"])
            for _, probe in probes_of(ProbeChunk(row["place"], body, keys)):
                _PROBE.decode(probe)
        except ValueError as error:
            return f"it cannot be decoded: {error}"
        return ""


_ENDPOINT = msgspec.json.Decoder(EndpointRecord)
_PROBE = msgspec.json.Decoder(StoredProbe)


def _decode_run(body: bytes) -> StoredRun:
    return decode_run(0, msgspec.json.decode(body), is_finished=True)


def _check_annotation(decoder: msgspec.json.Decoder[Any], _: Connection, row: Row) -> str:
    return _undecodable(decoder.decode, row["body"])


def _sound(_: Connection, row: Row) -> str:
    """The check of a row whose values have only types."""
    return ""


def wrong_value(table: Table, row: Row) -> str:
    """Find a value that its column cannot have, which SQLite accepts.

    Args:
        table: The table.
        row: A row of it.

    Returns:
        Which column it is, and what is wrong; '' if the values have the types of their columns, times are in
        years of four digits, and numbers are from 0 to LARGEST.
    """
    for column in table.columns:
        value, expected = row[column.key], column.type.python_type
        types = (float, int) if expected is float else (expected,)
        if value is None and column.nullable:
            continue
        if not isinstance(value, types):
            return f"its {column.key} is of type {type(value).__name__}, expected {expected.__name__}"
        if expected is int and not 0 <= value < LARGEST:
            return f"its {column.key} is no number of a store: {value}"
        if column.key in TIMES and not abs(value) < LARGEST_TIME:
            return f"its {column.key} is no time: {value}"
    return ""


def _undecodable(decode: Callable[[bytes], object], body: bytes) -> str:
    """Why a body cannot be decoded; '' if it can."""
    try:
        decode(body)
    except ValueError as error:
        return f"it cannot be decoded: {error}"
    return ""


def _is_canonical(canonical: bytes, key: bytes) -> bool:
    """Whether this is the request of a key; an empty one is a request whose texts were lost earlier."""
    return not canonical or hashlib.sha256(canonical).digest() == key
