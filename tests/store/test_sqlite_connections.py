"""Connections to a SQLite file: transactions, threads, and what stays open."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sightline.store import sqlite_file
from sightline.store.sqlite_file import SqliteConnections


@pytest.fixture
def path(tmp_path: Path) -> Path:
    connections = SqliteConnections(tmp_path / "s.db")
    with connections.transaction(writes=True) as connection:
        connection.change("CREATE TABLE numbers (number INTEGER)")
    connections.close()
    return tmp_path / "s.db"


def _numbers(connections: SqliteConnections) -> list[int]:
    with connections.transaction(writes=False) as connection:
        return [number for (number,) in connection.rows("SELECT number FROM numbers ORDER BY number")]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_error_undoes_a_transaction_and_frees_its_lock(path: Path, error: type[BaseException]) -> None:
    connections = SqliteConnections(path)

    def fail() -> None:
        with connections.transaction(writes=True) as connection:
            connection.change("INSERT INTO numbers VALUES (1)")
            raise error

    with pytest.raises(error):
        fail()
    with closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
    assert _numbers(connections) == []
    connections.close()


def test_a_failed_statement_undoes_the_statements_before_it(path: Path) -> None:
    connections = SqliteConnections(path)

    def fail() -> None:
        with connections.transaction(writes=True) as connection:
            connection.change_many("INSERT INTO numbers VALUES (?)", [(1,), (2,)])
            connection.change("INSERT INTO letters VALUES ('a')")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        fail()
    assert _numbers(connections) == []
    connections.close()


def test_a_transaction_that_is_rolled_back_may_end_without_an_error(path: Path) -> None:
    connections = SqliteConnections(path)
    with connections.transaction(writes=True) as connection:
        connection.change("INSERT INTO numbers VALUES (1)")
        connection.roll_back()
    assert _numbers(connections) == []
    connections.close()


def test_all_reads_of_a_transaction_see_the_same_state(path: Path) -> None:
    connections = SqliteConnections(path)
    query = "SELECT count(*) FROM numbers"
    with connections.transaction(writes=False) as reader:
        before = reader.rows(query)
        with connections.transaction(writes=True) as writer:
            assert writer.change("INSERT INTO numbers VALUES (1)") == 1
        assert reader.rows(query) == before
    assert _numbers(connections) == [1]
    connections.close()


def test_threads_write_one_after_another_and_few_connections_stay_open(path: Path) -> None:
    connections = SqliteConnections(path)

    def add(number: int) -> None:
        with connections.transaction(writes=True) as connection:
            ((found,),) = connection.rows("SELECT count(*) FROM numbers")
            connection.change("INSERT INTO numbers VALUES (?)", (found,))
        _numbers(connections)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(add, range(100)))
    assert _numbers(connections) == list(range(100))
    assert len(connections._idle) <= sqlite_file._KEPT
    connections.close()


def test_no_connection_stays_open_after_close_even_one_that_was_in_use(path: Path) -> None:
    """The last connection that is closed removes the write-ahead log."""
    connections = SqliteConnections(path)
    with connections.transaction(writes=True) as connection:
        connections.close()
        connection.change("INSERT INTO numbers VALUES (1)")
    assert not path.with_name("s.db-wal").exists()
    assert _numbers(connections) == [1]
    connections.close()
