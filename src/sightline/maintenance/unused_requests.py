"""Finds and drops requests that no run refers to, with their answers, and texts that no request has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, delete, func, select

from sightline.engine import schema
from sightline.engine.dictionaries import Dictionaries
from sightline.engine.probe_chunks import KEY_BYTES
from sightline.engine.requests import Requests
from sightline.engine.runs import keys_of_row
from sightline.engine.texts import Texts

PAGE = 500
_REFERENCES = msgspec.msgpack.Decoder(list[int | bytes])


def drop_unused_requests(connection: Connection, name: str) -> tuple[int, int]:
    """Drop the requests that no run refers to, and their answers.

    The probes of runs refer to requests. Those to a judge of any run stay all: its reports read the replies.

    Args:
        connection: A connection that writes.
        name: The store's name in messages.

    Returns:
        The number of requests, and of answers.
    """
    used = _used_requests(connection)
    judges = _judges(connection)
    requests = Requests(Texts(Dictionaries(name)), name)
    count = answers = 0
    for rows in _pages(connection, schema.requests):
        unused = [row.id for row in rows if not used[row.id]]
        bodies = {row.id: bytes(row.body) for row in rows if not used[row.id]}
        canonical = requests.read(connection, bodies)
        unused = [number for number in unused if schema.model_of(canonical[number] or b"{}") not in judges]
        if unused:
            answers += connection.execute(
                delete(schema.answers).where(schema.answers.c.request.in_(unused))
            ).rowcount
            count += connection.execute(
                delete(schema.requests).where(schema.requests.c.id.in_(unused))
            ).rowcount
    return count, answers


def drop_unused_texts(connection: Connection) -> int:
    """Drop the texts that no request has.

    Args:
        connection: A connection that writes.

    Returns:
        The number of texts.
    """
    used = bytearray(_highest(connection, schema.texts) + 1)
    for rows in _pages(connection, schema.requests):
        for row in rows:
            for one in _REFERENCES.decode(row.body):
                if isinstance(one, int):
                    used[one] = 1
    dropped = 0
    for rows in _pages(connection, schema.texts):
        unused = [row.id for row in rows if not used[row.id]]
        if unused:
            dropped += connection.execute(delete(schema.texts).where(schema.texts.c.id.in_(unused))).rowcount
    return dropped


def _used_requests(connection: Connection) -> bytearray:
    """1 at the number of each request that a probe of a run refers to, partners included."""
    used = bytearray(_highest(connection, schema.requests) + 1)
    last = (-1, -1)
    table = schema.probes
    while True:
        query = select(table).where(
            (table.c.run > last[0]) | ((table.c.run == last[0]) & (table.c.place > last[1]))
        )
        rows = connection.execute(query.order_by(table.c.run, table.c.place).limit(4)).all()
        for row in rows:
            packed = keys_of_row(row.run, row.place, row.definitions, bytes(row.answer_keys))
            keys = [packed[start : start + KEY_BYTES] for start in range(0, len(packed), KEY_BYTES)]
            for part in (keys[start : start + PAGE] for start in range(0, len(keys), PAGE)):
                found = select(schema.requests.c.id).where(schema.requests.c.key.in_(part))
                for number in connection.execute(found).scalars():
                    used[number] = 1
        if not rows:
            return used
        last = rows[-1].run, rows[-1].place


def _judges(connection: Connection) -> set[str]:
    """The identities of the judge models of all runs."""
    found: set[str] = set()
    for body in connection.execute(select(schema.runs.c.body)).scalars():
        judges = msgspec.json.decode(bytes(body)).get("judges") or {}
        found |= {str(judge.get("identity")) for judge in judges.values()}
    return found


def _pages(connection: Connection, table: Table) -> Iterator[Sequence[Any]]:
    """Number and body of all rows of a table with numbers, a few hundred at once."""
    last = -1
    while True:
        query = select(table.c.id, table.c.body).where(table.c.id > last).order_by(table.c.id).limit(PAGE)
        rows = connection.execute(query).all()
        if not rows:
            return
        last = rows[-1].id
        yield rows


def _highest(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.max(table.c.id))).scalar_one() or 0)
