"""Stores of earlier versions keep everything when they are migrated, or stay as they were.

`earlier_stores` holds dumps of stores that versions 1 to 3 of the schema wrote (commits 5b48cc5^,
0d82b9c and 1f29028) on SQLite and on PostgreSQL, with `run groups:groups.jsonl --model baseline/chance
--judge baseline/chance --judge rules --set embedder=none` in tests/e2e/previous_version, and what
`report 1 --format csv` printed.
"""

from __future__ import annotations

import csv
import io
import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from msgspec import Struct

from sightline.cli.main import main
from sightline.engine.connect import connect
from sightline.engine.probe_chunks import probes_of
from sightline.engine.request_parts import model_of
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError
from sightline.maintenance.verify import find_faults
from sightline.types import Answer

EARLIER = Path(__file__).parent / "earlier_stores"
POSTGRES = pytest.mark.postgres


class Earlier(Struct, frozen=True):
    """A store of an earlier version."""

    url: str
    version: int

    @property
    def on_postgres(self) -> bool:
        return "://" in self.url

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return _rows(self.url, query)

    def backup(self, table: str) -> list[tuple[Any, ...]]:
        """The requests or answers of the copy that the migration makes."""
        columns = "key, body" if table == "requests" else "id, key, body"
        if self.on_postgres:
            return self.rows(f"SELECT {columns} FROM public_v{self.version}_backup.{table} ORDER BY 1")
        return _rows(f"{self.url}.v{self.version}.backup", f"SELECT {columns} FROM {table} ORDER BY 1")

    def go_back(self) -> None:
        """Make the copy the store again: as a file, or as docs/postgresql.md says."""
        if not self.on_postgres:
            for suffix in ("-wal", "-shm"):
                Path(self.url + suffix).unlink(missing_ok=True)
            shutil.copy(f"{self.url}.v{self.version}.backup", self.url)
            return
        database = connect(self.url, create=False)
        with database.write() as connection:
            connection.change("DROP SCHEMA public CASCADE")
            connection.change(f"ALTER SCHEMA public_v{self.version}_backup RENAME TO public")
        database.close()


@pytest.fixture(
    params=[(1, "sqlite"), (2, "sqlite")]
    + [pytest.param((version, "postgres"), marks=POSTGRES) for version in (1, 2)],
    ids=["1-sqlite", "2-sqlite", "1-postgres", "2-postgres"],
)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Earlier:
    version, kind = request.param
    if kind == "sqlite":
        url = str(tmp_path / "s.db")
        with closing(sqlite3.connect(url)) as database, database:
            database.executescript((EARLIER / f"version_{version}.sql").read_text())
        return Earlier(url, version)
    url = request.getfixturevalue("postgres_url")
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute((EARLIER / f"version_{version}_postgres.sql").read_bytes())
    return Earlier(url, version)


def _rows(url: str, query: str) -> list[tuple[Any, ...]]:
    database = connect(url, create=False)
    with database.read() as connection:
        rows = connection.rows(query)
    database.close()
    return rows


def test_a_migrated_store_holds_what_the_earlier_one_held(earlier: Earlier) -> None:
    requests = dict(earlier.rows("SELECT key, body FROM requests ORDER BY key"))
    all_answers = earlier.rows("SELECT id, key, body FROM answers ORDER BY id")
    answers = {key: body for _, key, body in reversed(all_answers)}
    probes = [body for (body,) in earlier.rows("SELECT body FROM probes WHERE run = 1 ORDER BY place")]
    assert (len(requests), len(probes)) == (len(answers), 12)
    store = Store.open(earlier.url)
    assert {key: store.answers.request(str(key)) for key in requests} == requests
    assert store.answers.look_up([str(key) for key in answers]) == {
        key: msgspec.json.decode(body, type=Answer) for key, body in answers.items()
    }
    assert list(store.runs.probes(1)) == probes
    assert {store.endpoints.has_requests(model_of(body)) for body in requests.values()} == {True}
    assert store.runs.get(1)[1]
    assert store.runs.start({}) > 1
    store.close()
    assert earlier.backup("requests") == list(requests.items())
    assert earlier.backup("answers") == all_answers


def test_a_migrated_run_has_the_metrics_that_it_had(
    earlier: Earlier, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "1", "--store", earlier.url, "--format", "csv"]) == 0
    expected = csv.DictReader(io.StringIO((EARLIER / f"version_{earlier.version}.csv").read_text()))
    printed = {row["metric"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    for row in expected:
        assert {name: printed[row["metric"]][name] for name in row} == row


DAMAGE = {
    "a run": ("UPDATE runs SET body = {bytes}", "runs"),
    "a request": (
        "UPDATE requests SET body = {bytes} WHERE key = (SELECT min(key) FROM requests)",
        "requests",
    ),
    "an answer": ("UPDATE answers SET body = {bytes} WHERE id = 1", "answers"),
    "a probe": ("UPDATE probes SET body = {bytes} WHERE place = (SELECT min(place) FROM probes)", "probes"),
}


def _change(earlier: Earlier, statement: str) -> None:
    database = connect(earlier.url, create=False)
    with database.write() as connection:
        value = "'\\x000aff'::bytea" if earlier.on_postgres else "x'000aff'"
        connection.change(statement.format(bytes=value))
    database.close()


@pytest.mark.parametrize("what", DAMAGE)
def test_a_store_with_a_damaged_row_is_migrated_and_verify_finds_the_row(earlier: Earlier, what: str) -> None:
    statement, table = DAMAGE[what]
    places = [place for (place,) in earlier.rows("SELECT place FROM probes WHERE run = 1 ORDER BY place")]
    _change(earlier, statement)
    store = Store.open(earlier.url)
    assert table in {fault.table for fault in find_faults(store, show_progress=False)}
    chunks = list(store.runs.chunks(1))
    assert chunks[0].first == places[0]
    if what == "a probe":
        assert [place for place, _ in probes_of(chunks[1])] == places[1:]
    else:
        assert len(list(store.runs.probes(1))) == len(places)
    store.close()


def test_a_store_with_a_damaged_key_stays_as_it_was_and_the_message_names_the_remedy(
    earlier: Earlier,
) -> None:
    _change(earlier, "UPDATE answers SET key = 'no key' WHERE id = 1")
    before = earlier.rows("SELECT id, key, body FROM answers ORDER BY id")
    with pytest.raises(EnvironmentFailedError, match=r"; it stays as it was: restore a backup"):
        Store.open(earlier.url)
    assert earlier.rows("SELECT id, key, body FROM answers ORDER BY id") == before


def _in_processes(work: Callable[[str], None], url: str, number: int) -> list[int | None]:
    """Run a function in processes at the same time; returns their exit statuses."""
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=work, args=(url,)) for _ in range(number)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def _migrate_and_die(url: str) -> None:
    def die(*_: object) -> None:
        os._exit(77)

    with mock.patch("sightline.engine.migrations.write_chunk", die):
        Store.open(url)


def test_a_migration_that_is_killed_leaves_the_store_as_it_was(earlier: Earlier, tmp_path: Path) -> None:
    before = earlier.rows("SELECT key, body FROM requests ORDER BY key")
    assert _in_processes(_migrate_and_die, earlier.url, 1) == [77]
    copy = earlier
    if not earlier.on_postgres:
        # With its write-ahead log, which the next process that opens the store removes.
        folder = shutil.copytree(tmp_path, tmp_path / "copy")
        copy = Earlier(str(folder / "s.db"), earlier.version)
    assert copy.rows("SELECT value FROM meta WHERE name = 'schema_version'") == [(str(earlier.version),)]
    assert copy.rows("SELECT key, body FROM requests ORDER BY key") == before
    store = Store.open(earlier.url)
    assert len(list(store.runs.probes(1))) == 12
    store.close()


def _open_and_read(url: str) -> None:
    store = Store.open(url)
    assert len(list(store.runs.probes(1))) == 12
    store.close()


def test_processes_that_open_an_earlier_store_at_once_migrate_it_once(earlier: Earlier) -> None:
    before = earlier.rows("SELECT id, key, body FROM answers ORDER BY id")
    assert _in_processes(_open_and_read, earlier.url, 4) == [0] * 4
    assert earlier.backup("answers") == before
    assert earlier.rows("SELECT count(*) FROM answers") == [(len(before),)]


def test_the_copy_that_a_migration_makes_can_be_the_store_again(earlier: Earlier) -> None:
    before = earlier.rows("SELECT id, key, body FROM answers ORDER BY id")
    runs = "INSERT INTO runs (body, created) VALUES ('{}', 0) RETURNING id"
    Store.open(earlier.url).close()
    earlier.go_back()
    assert earlier.rows("SELECT value FROM meta WHERE name = 'schema_version'") == [(str(earlier.version),)]
    assert earlier.rows("SELECT id, key, body FROM answers ORDER BY id") == before
    # An earlier Sightline goes on: its rows get new numbers.
    assert earlier.rows(runs) == [(2,)]
    # A later upgrade migrates it once more.
    _open_and_read(earlier.url)
    assert earlier.backup("answers") == before


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=POSTGRES)])
def version_3(request: pytest.FixtureRequest, tmp_path: Path) -> Earlier:
    """A store of version 3 (commit 1f29028), with the run of the dumps above, called `base`."""
    if request.param == "sqlite":
        url = str(tmp_path / "s.db")
        with closing(sqlite3.connect(url)) as database, database:
            database.executescript((EARLIER / "version_3.sql").read_text())
        return Earlier(url, 3)
    url = request.getfixturevalue("postgres_url")
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute((EARLIER / "version_3_postgres.sql").read_bytes())
    return Earlier(url, 3)


def test_a_store_of_version_3_keeps_every_row_and_takes_annotation_projects(
    version_3: Earlier, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {
        "requests": "id",
        "answers": "id",
        "probes": "place",
        "runs": "id",
        "definitions": "id",
        "texts": "id",
    }
    query = "SELECT * FROM {} ORDER BY {}"
    before = {table: version_3.rows(query.format(table, key)) for table, key in keys.items()}
    assert all(before.values())
    store = Store.open(version_3.url)
    assert {table: version_3.rows(query.format(table, key)) for table, key in keys.items()} == before
    assert list(find_faults(store, show_progress=False)) == []
    store.close()
    assert version_3.rows("SELECT count(*) FROM annotation_projects") == [(0,)]
    assert main(["report", "base", "--store", version_3.url, "--format", "csv"]) == 0
    assert capsys.readouterr().out == (EARLIER / "version_2.csv").read_text()
    version_3.go_back()
    assert version_3.rows("SELECT value FROM meta WHERE name = 'schema_version'") == [("3",)]


def test_a_store_of_version_4_takes_batches_and_keeps_every_row(store_url: str) -> None:
    """Version 4 (commit 9ff12c5) had the tables of version 5 but for those of batches."""
    store = Store.open(store_url)
    run = store.runs.start({"benchmark": "codis"})
    with store.database.core_write() as connection:
        for table in ("batch_requests", "batches"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql("UPDATE meta SET value = '4' WHERE name = 'schema_version'")
    store.close()
    migrated = Store.open(store_url)
    assert migrated.batches.all() == []
    assert migrated.runs.get(run) == ({"benchmark": "codis"}, False)
    migrated.close()
    assert _rows(store_url, "SELECT value FROM meta WHERE name = 'schema_version'") == [("5",)]
