"""Migrations of stores that an earlier Sightline wrote, one version at a time.

They read the tables of the earlier version with their own SQL, page by page, so that memory does not grow
with the store. `migrate_store` runs them in one transaction, after a backup. A row with a damaged body is
kept as it is, so that the store can be opened and `store verify` finds the row.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import groupby
from typing import Any

import msgspec
from sqlalchemy import text, update
from sqlalchemy.engine import Connection as CoreConnection

from sightline.engine import postgres, schema, tables
from sightline.engine.answers import State, state_of
from sightline.engine.connection import Connection
from sightline.engine.core_connection import plain
from sightline.engine.database import Database, insert
from sightline.engine.dictionaries import COMMON, Dictionaries, add_common_dictionary
from sightline.engine.endpoint_log import list_models
from sightline.engine.request_parts import model_of
from sightline.engine.requests import Requests
from sightline.engine.runs import PROBES_PER_CHUNK, write_chunk
from sightline.errors import EnvironmentFailedError
from sightline.types import Failure

PAGE = 500
"""Requests or answers that are read together."""


def _list_models(connection: CoreConnection) -> None:
    """1 -> 2: create two tables, and list the models of the requests."""
    schema.metadata.create_all(connection, [schema.endpoints, schema.models])
    for rows in _pages(connection, "requests", ("key",), ("body",), PAGE):
        list_models(
            plain(connection), (body for body in (bytes(row[1]) for row in rows) if _is_request(body))
        )


def _store_once(connection: CoreConnection) -> None:
    """2 -> 3: keys are bytes, texts are kept once, bodies are compressed, probes are stored in chunks."""
    replaced = ("requests", "answers", "probes")
    for table in replaced:
        connection.execute(text(f"ALTER TABLE {table} RENAME TO {table}_2"))
    for table in ("claims", "images"):
        connection.execute(text(f"DROP TABLE IF EXISTS {table}"))
    schema.metadata.create_all(connection)
    plain_connection = plain(connection)
    add_common_dictionary(plain_connection)
    # Only this transaction uses these dictionaries: if it fails, nothing is compressed with them.
    dictionaries = Dictionaries(str(connection.engine.url.database))
    requests = Requests(dictionaries)
    for rows in _pages(connection, "requests_2", ("key",), ("body",), PAGE):
        requests.add(plain_connection, {bytes.fromhex(key): bytes(body) for key, body in rows})
        if requests.texts.training_due:
            requests.texts.train(plain_connection)
    for rows in _pages(connection, "answers_2", ("id",), ("key", "ok", "body", "created"), PAGE):
        _copy_answers(plain_connection, dictionaries, requests, rows)
    for rows in _pages(connection, "probes_2", ("run", "place"), ("body",), PROBES_PER_CHUNK):
        probes = ((int(run), place, bytes(body)) for run, place, body in rows)
        # A damaged probe has its own chunk: it must not make the others unreadable.
        for (run, damaged), members in groupby(probes, key=lambda row: (row[0], _breaks_chunks(row[2]))):
            numbered = [(place, body) for _, place, body in members]
            for one in [[pair] for pair in numbered] if damaged else [numbered]:
                write_chunk(plain_connection, dictionaries, run, one)
    for table in replaced:
        connection.execute(text(f"DROP TABLE {table}_2"))


def _identify_runs(connection: CoreConnection) -> None:
    """2 -> 3: give each run an identity, the same in all copies of the store."""
    connection.execute(text("ALTER TABLE runs ADD COLUMN uid VARCHAR(33)"))
    for rows in _pages(connection, "runs", ("id",), ("body", "created"), PAGE):
        for number, body, created in rows:
            uid = hashlib.sha256(_facts(bytes(body), created)).hexdigest()[:32]
            connection.execute(text("UPDATE runs SET uid = :uid WHERE id = :id"), {"uid": uid, "id": number})
    for index in schema.runs.indexes:
        index.create(connection)


def _facts(body: bytes, created: float) -> bytes:
    """What does not change of a run, unlike its name and what it finds; the whole body if it is damaged."""
    try:
        about = msgspec.json.decode(body, type=dict[str, Any]).get("description", {})
        facts = [created, *(about.get(name) for name in ("benchmark", "setting", "identity"))]
    except (ValueError, AttributeError):
        return body + repr(created).encode()
    return msgspec.json.encode(facts)


def _is_request(body: bytes) -> bool:
    with suppress(ValueError):
        model_of(body)
        return True
    return False


def _breaks_chunks(body: bytes) -> bool:
    """Whether a probe has a byte that chunks of probes cannot hold; JSON in one line has none."""
    return b"\0" in body or b"\n" in body


def _copy_answers(
    connection: Connection,
    dictionaries: Dictionaries,
    requests: Requests,
    rows: Sequence[Sequence[Any]],
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
    insert(connection, "answers", ("request", "state", "body", "created"), copied)


def _state_of_failure(body: bytes) -> State:
    try:
        return state_of(msgspec.json.decode(body, type=Failure))
    except msgspec.MsgspecError:
        return State.TRANSIENT


def _pages(
    connection: CoreConnection, table: str, key: Sequence[str], columns: Sequence[str], size: int
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


def _add_annotation(connection: CoreConnection) -> None:
    """3 -> 4: create the tables of annotation projects."""
    made = [table for table in schema.metadata.tables.values() if table.name.startswith("annotat")]
    schema.metadata.create_all(connection, made)


def _add_batches(connection: CoreConnection) -> None:
    """4 -> 5: create the tables of batches at providers."""
    schema.metadata.create_all(connection, [schema.batches, schema.batch_requests])


MIGRATIONS: Mapping[int, tuple[str | Callable[[CoreConnection], None], ...]] = {
    1: (_list_models,),
    2: (_store_once, _identify_runs),
    3: (_add_annotation,),
    4: (_add_batches,),
}
"""Version -> the steps that lead to the next version: SQL statements, and functions."""


def migrate_store(database: Database) -> None:
    """Migrate a store to this version after a backup, unless another process has done so meanwhile.

    Args:
        database: The database of the store.

    Raises:
        EnvironmentFailedError: A row is damaged so that it cannot be kept, such as the key of a request.
    """
    with database.core_write() as connection:
        plain_connection = plain(connection)
        postgres.wait_for_migration(plain_connection)
        postgres.wait_for_turn(plain_connection, database.name)
        version = tables.schema_version(plain_connection, database.name)
        if version >= tables.SCHEMA_VERSION:
            return
        if plain_connection.is_file:
            _back_up_sqlite(str(connection.engine.url.database), version)
        else:
            postgres.back_up(connection, version, plain_connection.tables())
        migrate(connection, database.name, version)
        connection.execute(
            update(schema.meta)
            .where(schema.meta.c.name == "schema_version")
            .values(value=str(tables.SCHEMA_VERSION))
        )
        # Caches that the user dropped.
        schema.metadata.create_all(connection)
    if database.is_file:
        _shrink(database)


def _back_up_sqlite(file: str, version: int) -> None:
    """Write a complete copy next to the store; a copy of the file would lack the write-ahead log."""
    with (
        closing(sqlite3.connect(file)) as source,
        closing(sqlite3.connect(f"{file}.v{version}.backup")) as copy,
    ):
        source.backup(copy)


def _shrink(database: Database) -> None:
    """Give the space of the earlier tables back. If it fails, the store is only larger."""
    with closing(database.core_engine().raw_connection()) as connection, suppress(sqlite3.OperationalError):
        connection.cursor().execute("VACUUM")


def migrate(connection: CoreConnection, name: str, version: int) -> None:
    """Migrate a store to this version, step by step.

    Args:
        connection: A connection that writes; its transaction is not committed.
        name: The store's name in messages.
        version: The version of the store.

    Raises:
        EnvironmentFailedError: A row is damaged so that it cannot be kept, such as the key of a request.
    """
    try:
        for step in range(version, tables.SCHEMA_VERSION):
            for change in MIGRATIONS[step]:
                if isinstance(change, str):
                    connection.execute(text(change))
                else:
                    change(connection)
    except (ValueError, TypeError) as error:
        raise EnvironmentFailedError(
            f"the store {name} has a damaged row and cannot be migrated ({error}); it stays as it was: "
            "restore a backup"
        ) from None
