"""Migrations of stores that an earlier Sightline wrote, one version at a time.

They read the tables of the earlier version with their own SQL, page by page, so that memory does not grow
with the store. `connect.prepare` runs them in one transaction, after a backup.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.engine import Connection

from sightline.engine import schema
from sightline.engine.answers import State, state_of
from sightline.engine.database import insert
from sightline.engine.dictionaries import COMMON, Dictionaries, add_common_dictionary
from sightline.engine.endpoint_log import list_models
from sightline.engine.requests import Requests
from sightline.engine.runs import CHUNK, write_chunk
from sightline.engine.texts import Texts
from sightline.types import Failure

PAGE = 500
"""Requests or answers that are read together."""


def _list_models(connection: Connection) -> None:
    """1 -> 2: create two tables, and list the models of the requests."""
    schema.metadata.create_all(connection, [schema.endpoints, schema.models])
    for rows in _pages(connection, "requests", ("key",), ("body",), PAGE):
        list_models(connection, (bytes(body) for _, body in rows))


def _store_once(connection: Connection) -> None:
    """2 -> 3: keys are bytes, texts are kept once, bodies are compressed, probes are stored in chunks."""
    replaced = ("requests", "answers", "probes")
    for table in replaced:
        connection.execute(text(f"ALTER TABLE {table} RENAME TO {table}_2"))
    for table in ("claims", "images"):
        connection.execute(text(f"DROP TABLE IF EXISTS {table}"))
    schema.metadata.create_all(connection)
    add_common_dictionary(connection)
    # Only this transaction uses these dictionaries: if it fails, nothing is compressed with them.
    dictionaries = Dictionaries(str(connection.engine.url.database))
    texts = Texts(dictionaries)
    requests = Requests(texts, dictionaries.name)
    for rows in _pages(connection, "requests_2", ("key",), ("body",), PAGE):
        requests.add(connection, {bytes.fromhex(key): bytes(body) for key, body in rows})
        if texts.training_due:
            texts.train(connection)
    for rows in _pages(connection, "answers_2", ("id",), ("key", "ok", "body", "created"), PAGE):
        _copy_answers(connection, dictionaries, requests, rows)
    for rows in _pages(connection, "probes_2", ("run", "place"), ("body",), CHUNK):
        for run, members in groupby(rows, key=lambda row: int(row[0])):
            write_chunk(connection, dictionaries, run, [(place, bytes(body)) for _, place, body in members])
    for table in replaced:
        connection.execute(text(f"DROP TABLE {table}_2"))


def _identify_runs(connection: Connection) -> None:
    """2 -> 3: give each run an identity, the same in all copies of the store."""
    connection.execute(text("ALTER TABLE runs ADD COLUMN uid VARCHAR(33)"))
    for rows in _pages(connection, "runs", ("id",), ("body", "created"), PAGE):
        for number, body, created in rows:
            # What a run is called and finds may change until it is finished; this does not.
            about = msgspec.json.decode(bytes(body)).get("description", {})
            facts = [created, *(about.get(name) for name in ("benchmark", "setting", "identity"))]
            uid = hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:32]
            connection.execute(text("UPDATE runs SET uid = :uid WHERE id = :id"), {"uid": uid, "id": number})
    for index in schema.runs.indexes:
        index.create(connection)


def _copy_answers(
    connection: Connection, dictionaries: Dictionaries, requests: Requests, rows: Sequence[Sequence[Any]]
) -> None:
    """Copy answers in their order; an answer whose request is lost gets an empty request."""
    keys = {key: bytes.fromhex(key) for _, key, *_ in rows}
    numbers = requests.numbers(connection, list(keys.values()))
    numbers |= requests.add(connection, {key: b"" for key in keys.values() if key not in numbers})
    copied = []
    for _, key, ok, body, created in rows:
        state = State.ANSWERED if ok else _state_of_failure(bytes(body))
        compressed = dictionaries.compress(connection, bytes(body), COMMON)
        copied.append((numbers[keys[key]], state, compressed, created))
    insert(connection, schema.answers, ("request", "state", "body", "created"), copied)


def _state_of_failure(body: bytes) -> State:
    try:
        return state_of(msgspec.json.decode(body, type=Failure))
    except msgspec.MsgspecError:
        return State.TRANSIENT


def _pages(
    connection: Connection, table: str, key: Sequence[str], columns: Sequence[str], size: int
) -> Iterator[Sequence[Sequence[Any]]]:
    """All rows of a table in the order of its key, page by page: the key's columns, then the others."""
    names, ordered = ", ".join([*key, *columns]), ", ".join(key)
    after = ", ".join(f":{name}" for name in key)
    query = f"SELECT {names} FROM {table} {{}} ORDER BY {ordered} LIMIT {size}"
    rows = connection.execute(text(query.format(""))).all()
    while rows:
        yield rows
        last = dict(zip(key, rows[-1], strict=False))
        rows = connection.execute(text(query.format(f"WHERE ({ordered}) > ({after})")), last).all()


MIGRATIONS: Mapping[int, tuple[str | Callable[[Connection], None], ...]] = {
    1: (_list_models,),
    2: (_store_once, _identify_runs),
}
"""Version -> the steps that lead to the next version: SQL statements, and functions."""
