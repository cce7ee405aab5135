"""One PostgreSQL store for many processes: shared answers, restarts of the server, messages."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.postgres_server import PASSWORD, ROLE, PostgresServer

from sightline.store.database import NoStoreError
from sightline.store.store import Store

pytestmark = pytest.mark.postgres


def _words(server: Any, data: Path, url: str, *more: object) -> list[object]:
    words = ["run", "iibench:none", "--model", server.model, "--data", data, "--store", url]
    return [*words, "--quiet", "--json", "--fingerprint", "off", "--canary", "off", *more]


def _responses(folder: Path) -> dict[str, str]:
    lines = map(json.loads, (folder / "answers.jsonl").read_text().splitlines())
    return {line["sample"]: line["response"] for line in lines if line["status"] == "ok"}


def _answers(url: str) -> int:
    return _rows(url, "answers")


def _rows(url: str, table: str) -> int:
    """The number of rows of a table; 0 before the store is there."""
    try:
        store = Store.open(url, create=False)
    except NoStoreError:
        return 0
    with store.database.read() as connection:
        ((count,),) = connection.rows(f"SELECT count(*) FROM {table}")
    store.close()
    return int(count)


@pytest.mark.slow
def test_eight_processes_that_start_at_once_share_every_answer(
    mock: Any, start: Any, iibench_folder: Any, postgres_url: str
) -> None:
    server, data = mock("--latency-ms", 200), iibench_folder(400)
    words = _words(server, data, postgres_url, "--concurrency", 8)
    processes = [start(*words, "--out", f"out{number}") for number in range(8)]
    ended = [process.end(240) for process in processes]
    assert [status for status, _, _ in ended] == [0] * 8, ended
    stats = server.stats()
    assert (stats["ok"], stats["resent"]) == (400, 0)
    assert _answers(postgres_url) == 400
    found = [_responses(data.parent / f"out{number}") for number in range(8)]
    assert len(found[0]) == 400
    assert all(responses == found[0] for responses in found)


@pytest.mark.slow
def test_a_run_waits_while_the_server_restarts_and_no_answer_is_lost(
    mock: Any, start: Any, iibench_folder: Any, postgres: PostgresServer, postgres_url: str
) -> None:
    server, data = mock("--latency-ms", 100), iibench_folder(400)
    words = _words(server, data, postgres_url, "--concurrency", 8)
    processes = [start(*words, "--out", f"out{number}") for number in range(2)]
    # Only a store that is open waits for the server: on a busy machine, one process begins later.
    while _rows(postgres_url, "runs") < 2:
        assert all(process.poll() is None for process in processes), [one.end() for one in processes]
        time.sleep(0.02)
    for answers in (60, 160):
        while server.stats()["ok"] < answers:
            assert all(process.poll() is None for process in processes), [one.end() for one in processes]
            time.sleep(0.02)
        with postgres.stopped("immediate"):
            time.sleep(1)
    ended = [process.end(240) for process in processes]
    assert [status for status, _, _ in ended] == [0, 0], ended
    stats = server.stats()
    assert (stats["ok"], stats["resent"]) == (400, 0)
    assert len(_responses(data.parent / "out0")) == len(_responses(data.parent / "out1")) == 400


@pytest.mark.slow
def test_a_server_that_stays_away_ends_the_run_and_the_same_command_goes_on(
    mock: Any, start: Any, iibench_folder: Any, postgres: PostgresServer, postgres_url: str
) -> None:
    server, data = mock("--latency-ms", 100), iibench_folder(200)
    words = _words(server, data, postgres_url, "--concurrency", 8)
    process = start(*words)
    while server.stats()["ok"] < 60:
        assert process.poll() is None, process.end()
        time.sleep(0.02)
    with postgres.stopped():
        status, out, err = process.end(180)
    assert (status, out) == (3, "")
    assert len(err.strip().splitlines()) == 1
    assert (
        "Everything committed before is kept; when the server runs again, run the same command again" in err
    )
    kept, answered = _answers(postgres_url), server.stats()["ok"]
    assert kept >= 30
    status, out, err = start(*words).end()
    assert (status, json.loads(out)["errors"]) == (0, 0)
    assert f"sent {200 - kept}, cached {kept}," in err
    # Only what arrived while the server was away was paid twice.
    assert server.stats()["ok"] == answered + 200 - kept


@pytest.mark.parametrize("name", ["run", "report"])
def test_a_server_that_is_down_is_one_line_without_the_password(
    command: Any, iibench_folder: Any, postgres: PostgresServer, postgres_url: str, name: str
) -> None:
    words = ["run", "iibench:none", "--model", "baseline/chance", "--data", iibench_folder(4)]
    words = [*(words if name == "run" else ["report"]), "--store", postgres_url]
    with postgres.stopped():
        status, out, err = command(*words)
    assert (status, out) == (3, "")
    assert len(err.strip().splitlines()) == 1
    assert f"{ROLE}:***@127.0.0.1:{postgres.port}" in err
    assert "Connection refused" in err
    assert PASSWORD not in err
    assert "p%40ss" not in err


def test_a_dry_run_on_an_empty_database_writes_nothing(
    command: Any, iibench_folder: Any, postgres: PostgresServer, postgres_url: str
) -> None:
    words = ["run", "iibench:none", "--model", "baseline/chance", "--data", iibench_folder(4), "--dry-run"]
    status, _, err = command(*words, "--store", postgres_url)
    assert status == 0, err
    database = postgres_url.rpartition("/")[2]
    assert postgres.admin("SELECT * FROM pg_tables WHERE schemaname = 'public'", database=database) == []
    status, _, err = command("report", "--store", postgres_url)
    assert (status, "there is no store here" in err) == (2, True)


@pytest.mark.slow
def test_ctrl_c_while_the_server_is_away_ends_the_run(
    mock: Any, start: Any, iibench_folder: Any, postgres: PostgresServer, postgres_url: str
) -> None:
    """What has arrived is stored as soon as the server runs again."""
    import signal

    server, data = mock("--latency-ms", 100), iibench_folder(200)
    process = start(*_words(server, data, postgres_url, "--concurrency", 8))
    while server.stats()["ok"] < 40:
        assert process.poll() is None, process.end()
        time.sleep(0.02)
    with postgres.stopped():
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    status, _, err = process.end()
    assert (status, "all answers so far are kept" in err) == (130, True)
    assert _answers(postgres_url) >= server.stats()["ok"] - 8
