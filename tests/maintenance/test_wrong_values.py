"""SQLite accepts every type in every column: `store verify` finds it, and caches are filled again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.annotation.types import DECODERS, Entry
from sightline.cli.main import main
from sightline.store import schema
from sightline.store.answers import EndpointRecord
from sightline.store.store import CacheTable, Store

RUN = "run groups:groups.jsonl --model baseline/chance --set embedder=none --quiet"
CACHES = (schema.images, schema.vectors, schema.readings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the store `sound.db`, which has a row in every table."""
    folder = tmp_path_factory.mktemp("wrong")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        lines = [
            {
                "group": f"g{number // 2}",
                "variant": f"r{number % 2}",
                "prompt": f"{number}?",
                "references": ["1"],
            }
            for number in range(6)
        ]
        Path("groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        for words in (
            f"{RUN} --out first --name one --tag a",
            f"{RUN} --repeats 2 --out second",
            "annotate new rate first --name rated",
            "annotate invite rated anna",
        ):
            assert main([*words.split(), "--store", "sound.db"]) == 0
        _fill_the_rest("sound.db")
        yield folder


def _fill_the_rest(url: str) -> None:
    store = Store.open(url)
    store.endpoints.add(EndpointRecord(identity="m", host="host", result="by name"))
    store.close()
    verdict = Path("first/verdicts.jsonl").read_bytes().splitlines()[0]
    rows: dict[str, tuple[Any, ...]] = {
        "verdicts": (1, 1, verdict),
        "batches": (1, "http://host/v1", "file-1", "batch-1", "in_progress", 1, 1.0),
        "batch_requests": (b"k" * 32, 1),
        "claims": (b"k" * 32, "o" * 32),
        "workers": ("o" * 32, 1.0),
        "annotation_log": (1, 1, "form", msgspec.json.encode(Entry(0, 1, 1, "judge", "form", 1.0))),
        "annotation_leases": (1, 1, 1, 1.0),
        "images": (b"k" * 16, b"body"),
        "vectors": (b"k" * 32, b"body"),
        "readings": (b"k" * 32, b"[]"),
    }
    with closing(sqlite3.connect(url, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        for table, row in rows.items():
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        for table in schema.metadata.tables:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table


def _put(table: str, column: str, value: Any) -> bool:
    """Make `wrong.db`, with a value in a row of `sound.db`; False if SQLite itself refuses it."""
    for file in Path().glob("wrong.db*"):
        file.unlink()
    shutil.copy("sound.db", "wrong.db")
    with closing(sqlite3.connect("wrong.db", isolation_level=None)) as connection:
        (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        _set_sql(connection, table, sql.replace(" NOT NULL", ""))
    with closing(sqlite3.connect("wrong.db", isolation_level=None)) as connection:
        try:
            first = f"(SELECT {column} FROM {table} LIMIT 1)"
            connection.execute(
                f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} IS {first}", (value,)
            )
        except sqlite3.Error:
            return False
        _set_sql(connection, table, sql)
    return True


def _set_sql(connection: sqlite3.Connection, table: str, sql: str) -> None:
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, table))
    connection.execute("PRAGMA writable_schema = RESET")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("table", DECODERS)
def test_a_body_of_an_annotation_project_that_is_another_document_is_named(
    capsys: pytest.CaptureFixture[str], table: str
) -> None:
    assert _put(table, "body", b"{}")
    assert main(["annotate", "status", "rated", "--store", "wrong.db"]) == 3
    assert f"row 1 of the table {table} cannot be read" in capsys.readouterr().err
    assert main(["store", "verify", "--store", "wrong.db"]) == 1
    assert table in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "table", [table.name for table in schema.metadata.sorted_tables if table.name != "meta"]
)
def test_verify_lists_a_value_of_another_type(capsys: pytest.CaptureFixture[str], table: str) -> None:
    for column in schema.metadata.tables[table].columns:
        value = "text" if column.type.python_type is bytes else b"\x00\xff"
        if not _put(table, column.name, value):
            continue
        capsys.readouterr()
        assert main(["store", "verify", "--json", "--store", "wrong.db"]) == 1
        listed = json.loads(capsys.readouterr().out)["listed"]
        assert any(
            one["table"] == table and f"its {column.name} is of type" in one["problem"] for one in listed
        )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("value", ["text", 7, 2**62, 1.5, b"", b"\x00\xff"])
def test_caches_are_filled_again(value: Any) -> None:
    expected = {file.name: file.read_bytes() for file in Path("first").iterdir() if file.suffix == ".jsonl"}
    shutil.copy("sound.db", "wrong.db")
    with closing(sqlite3.connect("wrong.db", isolation_level=None)) as connection:
        for table in CACHES:
            connection.execute(f"UPDATE {table.name} SET body = ?", (value,))
    assert main([*RUN.split(), "--store", "wrong.db", "--out", "again"]) == 0
    assert {name: (Path("again") / name).read_bytes() for name in expected} == expected


@pytest.mark.usefixtures("folder")
def test_a_body_of_another_type_is_a_missing_one() -> None:
    shutil.copy("sound.db", "wrong.db")
    store = Store.open("wrong.db")
    for table in CACHES:
        cache = CacheTable(store.database, table.name)
        with store.database.write() as connection:
            (key,) = connection.core.exec_driver_sql(f"SELECT key FROM {table.name} LIMIT 1").one()
            connection.core.exec_driver_sql(f"UPDATE {table.name} SET body = ? WHERE key = ?", (2**62, key))
        assert cache.look_up([key]) == {}
        cache.add({key: b"new"})
        assert cache.look_up([key]) == {key: b"new"}
    store.close()
