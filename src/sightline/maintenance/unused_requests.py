"""Finds and drops requests that no run refers to, with their answers, and texts that no request has."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Table, delete, func, select

from sightline.engine import schema
from sightline.engine.core_connection import plain
from sightline.engine.database_errors import damage
from sightline.engine.dictionaries import Dictionaries
from sightline.engine.probe_chunks import split_keys
from sightline.engine.request_parts import model_of
from sightline.engine.requests import Requests
from sightline.engine.runs import keys_of_row
from sightline.judging.judges import JudgeModel
from sightline.maintenance.table_reader import read_pages


class _Run(Struct):
    """The part of a run's body that says which models judge it."""

    judges: Mapping[str, JudgeModel] | None = None


_RUN = msgspec.json.Decoder(_Run)


def drop_unused_requests(connection: Connection, name: str) -> tuple[int, int]:
    """Drop the requests that no run refers to, and their answers.

    The probes of runs refer to requests. Those to a judge of any run stay all: its reports read the replies.

    Args:
        connection: A connection that writes.
        name: The store's name in messages.

    Returns:
        The number of requests, and of answers.

    Raises:
        EnvironmentFailedError: A row that says what is used is damaged.
    """
    requests = Requests(Dictionaries(name))
    used = _used_requests(connection, requests, name)
    judges = _judges(connection, name)
    count = answers = 0
    for page in read_pages(connection, schema.requests):
        bodies = {row["id"]: row["body"] for row in page if not used[row["id"]]}
        canonical = requests.read(plain(connection), bodies)
        unused = [number for number, body in canonical.items() if _model_of(number, body, name) not in judges]
        if unused:
            answers += connection.execute(
                delete(schema.answers).where(schema.answers.c.request.in_(unused))
            ).rowcount
            count += connection.execute(
                delete(schema.requests).where(schema.requests.c.id.in_(unused))
            ).rowcount
    return count, answers


def drop_unused_texts(connection: Connection, name: str) -> int:
    """Drop the texts that no request has.

    Args:
        connection: A connection that writes.
        name: The store's name in messages.

    Returns:
        The number of texts.

    Raises:
        EnvironmentFailedError: A request is damaged.
    """
    requests = Requests(Dictionaries(name))
    used = bytearray(_highest(connection, schema.texts) + 1)
    for page in read_pages(connection, schema.requests):
        for row in page:
            numbers = [one for one in requests.references(row["id"], row["body"]) if isinstance(one, int)]
            if not all(0 < one < len(used) for one in numbers):
                raise damage(name, "requests", row["id"], "a text of it does not exist")
            for one in numbers:
                used[one] = 1
    dropped = 0
    for page in read_pages(connection, schema.texts):
        unused = [row["id"] for row in page if not used[row["id"]]]
        if unused:
            dropped += connection.execute(delete(schema.texts).where(schema.texts.c.id.in_(unused))).rowcount
    return dropped


def _used_requests(connection: Connection, requests: Requests, name: str) -> bytearray:
    """1 at the number of each request that a probe of a run refers to, partners included."""
    used = bytearray(_highest(connection, schema.requests) + 1)
    for page in read_pages(connection, schema.probes):
        for row in page:
            try:
                keys = keys_of_row(row["run"], row["place"], row["definitions"], row["answer_keys"])
            except ValueError as error:
                raise damage(name, "probes", row["place"], f"run {row['run']}: {error}") from None
            for number in requests.numbers(plain(connection), split_keys(keys)).values():
                used[number] = 1
    return used


def _judges(connection: Connection, name: str) -> set[str]:
    """The identities of the judge models of all runs."""
    found: set[str] = set()
    for row in connection.execute(select(schema.runs.c.id, schema.runs.c.body)):
        try:
            judges = _RUN.decode(row.body).judges or {}
        except ValueError as error:
            raise damage(name, "runs", row.id, str(error)) from None
        found |= {judge.identity for judge in judges.values()}
    return found


def _model_of(number: int, canonical: bytes, name: str) -> str:
    """The model that a request is for; '' if its text was lost earlier."""
    try:
        return model_of(canonical or b"{}")
    except ValueError as error:
        raise damage(name, "requests", number, str(error)) from None


def _highest(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.max(table.c.id))).scalar_one() or 0)
