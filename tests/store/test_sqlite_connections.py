"""Connections to a SQLite file: transactions, threads, and what stays open."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sightline.store.database import Database, StoreFailedError
from sightline.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    database = Store.open(str(tmp_path / "s.db")).database
    with database.write() as connection:
        connection.change("CREATE TABLE numbers (number INTEGER)")
    database.close()
    return tmp_path / "s.db"


def _numbers(database: Database) -> list[int]:
    with database.read() as connection:
        return [number for (number,) in connection.rows("SELECT number FROM numbers ORDER BY number")]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_error_undoes_a_transaction_and_frees_its_lock(path: Path, error: type[BaseException]) -> None:
    database = Store.open(str(path)).database

    def fail() -> None:
        with database.write() as connection:
            connection.change("INSERT INTO numbers VALUES (1)")
            raise error

    with pytest.raises(error):
        fail()
    with closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
    assert _numbers(database) == []
    database.close()


def test_a_failed_statement_undoes_the_statements_before_it(path: Path) -> None:
    database = Store.open(str(path)).database

    def fail() -> None:
        with database.write() as connection:
            connection.change_many("INSERT INTO numbers VALUES (?)", [(1,), (2,)])
            connection.change("INSERT INTO letters VALUES ('a')")

    with pytest.raises(StoreFailedError, match="no such table"):
        fail()
    assert _numbers(database) == []
    database.close()


def test_a_transaction_that_is_rolled_back_may_end_without_an_error(path: Path) -> None:
    database = Store.open(str(path)).database
    with database.write() as connection:
        connection.change("INSERT INTO numbers VALUES (1)")
        connection.roll_back()
    assert _numbers(database) == []
    database.close()


def test_all_reads_of_a_transaction_see_the_same_state(path: Path) -> None:
    database = Store.open(str(path)).database
    query = "SELECT count(*) FROM numbers"
    with database.read() as reader:
        before = reader.rows(query)
        with database.write() as writer:
            assert writer.change("INSERT INTO numbers VALUES (1)") == 1
        assert reader.rows(query) == before
    assert _numbers(database) == [1]
    database.close()


def test_threads_write_one_after_another(path: Path) -> None:
    database = Store.open(str(path)).database

    def add(number: int) -> None:
        with database.write() as connection:
            ((found,),) = connection.rows("SELECT count(*) FROM numbers")
            connection.change("INSERT INTO numbers VALUES (?)", (found,))
        _numbers(database)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(add, range(100)))
    assert _numbers(database) == list(range(100))
    database.close()
