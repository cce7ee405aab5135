"""Stores of earlier versions keep everything when they are migrated, or stay as they were.

`earlier_stores` holds dumps of stores that versions 1 and 2 of the schema wrote (commits
5b48cc5^ and 0d82b9c), with `run groups:groups.jsonl --model baseline/chance --judge baseline/chance
--judge rules --set embedder=none` in tests/e2e/previous_version, and what `report 1 --format csv` printed.
"""

from __future__ import annotations

import csv
import io
import multiprocessing
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from sightline.cli.main import main
from sightline.engine.schema import model_of
from sightline.engine.store import Store
from sightline.types import Answer

EARLIER = Path(__file__).parent / "earlier_stores"
VERSIONS = (1, 2)


def _write(version: int, folder: Path) -> Path:
    path = folder / "s.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript((EARLIER / f"version_{version}.sql").read_text())
    return path


def _rows(path: Path | str, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_migrated_store_holds_what_the_earlier_one_held(tmp_path: Path, version: int) -> None:
    path = _write(version, tmp_path)
    requests = dict(_rows(path, "SELECT key, body FROM requests"))
    answers = dict(_rows(path, "SELECT key, body FROM answers ORDER BY id DESC"))
    probes = [body for (body,) in _rows(path, "SELECT body FROM probes WHERE run = 1 ORDER BY place")]
    assert (len(requests), len(probes)) == (len(answers), 12)
    store = Store.open(str(path))
    assert {key: store.answers.request(str(key)) for key in requests} == requests
    assert store.answers.look_up([str(key) for key in answers]) == {
        key: msgspec.json.decode(body, type=Answer) for key, body in answers.items()
    }
    assert list(store.runs.probes(1)) == probes
    assert {store.endpoints.has_requests(model_of(body)) for body in requests.values()} == {True}
    assert store.runs.get(1)[1]
    store.close()
    assert _rows(f"{path}.v{version}.backup", "SELECT key, body FROM requests") == list(requests.items())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_migrated_run_has_the_metrics_that_it_had(
    tmp_path: Path, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(version, tmp_path)
    assert main(["report", "1", "--store", str(path), "--format", "csv"]) == 0
    expected = csv.DictReader(io.StringIO((EARLIER / f"version_{version}.csv").read_text()))
    printed = {row["metric"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    for row in expected:
        assert {name: printed[row["metric"]][name] for name in row} == row


def _migrate_and_die(path: Path) -> None:
    def die(*_: object) -> None:
        os._exit(77)

    with mock.patch("sightline.engine.migrations.write_chunk", die):
        Store.open(str(path))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_migration_that_is_killed_leaves_the_store_as_it_was(tmp_path: Path, version: int) -> None:
    path = _write(version, tmp_path)
    before = _rows(path, "SELECT key, body FROM requests")
    process = multiprocessing.get_context("fork").Process(target=_migrate_and_die, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == 77
    copy = shutil.copytree(tmp_path, tmp_path / "copy") / "s.db"
    assert _rows(copy, "SELECT value FROM meta WHERE name = 'schema_version'") == [(str(version),)]
    assert _rows(copy, "SELECT key, body FROM requests") == before
    store = Store.open(str(path))
    assert len(list(store.runs.probes(1))) == 12
    store.close()
