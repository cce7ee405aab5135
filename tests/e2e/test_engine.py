"""The engine as its users meet it: processes, sockets, a store on a disk, and everything that goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.results import lasting_lines, lasting_metrics

from sightline.store.store import Store

KEY = "sk-planted-0123456789abcdef"


def _words(mock: Any, data: Path, *more: object) -> list[object]:
    words = ["run", "iibench:none", "--model", mock.model, "--data", data, "--quiet", "--json"]
    return [*words, "--fingerprint", "off", "--canary", "off", *more]


def _results(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What a results folder says, without where and how fast the model was asked."""
    metrics, answers = lasting_metrics(folder), lasting_lines(folder / "answers.jsonl")
    for line in (metrics, *answers):
        for name in ("model", "model_identity", "key"):
            line.pop(name, None)
    return answers, metrics


def _wait_for(process: Any, server: Any, answers: int) -> None:
    """Wait until a server has given so many answers to a process that is still running."""
    while server.stats()["ok"] < answers:
        assert process.poll() is None, process.end()
        time.sleep(0.02)


@pytest.mark.slow
def test_processes_on_one_store_share_the_work_and_ask_nothing_twice(
    mock: Any, start: Any, iibench_folder: Any, store_url: str
) -> None:
    """Two begin at once, a third when requests are on their way."""
    server, data = mock("--latency-ms", 250), iibench_folder(240)
    processes: list[Any] = []
    for number in range(3):
        words = _words(server, data, "--out", f"out{number}", "--concurrency", 8, "--store", store_url)
        if number == 2:
            _wait_for(processes[0], server, 1)
        processes.append(start(*words))
    ended = [process.end() for process in processes]
    assert [status for status, _, _ in ended] == [0, 0, 0], ended
    stats = server.stats()
    assert (stats["ok"], stats["resent"]) == (240, 0)
    folders = [data.parent / f"out{number}" for number in range(3)]
    assert all(_results(folder) == _results(folders[0]) for folder in folders)
    assert len(_results(folders[0])[0]) == 240


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_keeps_everything_answered_and_goes_on(
    mock: Any, start: Any, iibench_folder: Any, store_url: str, number: signal.Signals
) -> None:
    server, data = mock("--latency-ms", 100), iibench_folder(160)
    words = _words(server, data, "--concurrency", 8, "--store", store_url)
    process = start(*words)
    _wait_for(process, server, 40)
    process.send_signal(number)
    status, _, err = process.end()
    assert status == 130
    assert len(err.strip().splitlines()) == 1
    said = re.fullmatch(
        r"interrupted; all answers so far are kept: run 1 has (\d+) of 160; run the same command to .*\s*",
        err,
    )
    assert said, err
    answered = server.stats()["ok"]
    status, _, err = start(*words).end()
    assert status == 0
    stats = server.stats()
    # Only what was on its way at the interrupt may have been answered to nobody.
    assert stats["resent"] <= 8
    assert f"sent {160 - answered + stats['resent']}, cached {answered - stats['resent']}," in err
    assert int(said[1]) == answered - stats["resent"]


@pytest.mark.slow
def test_a_budget_is_spent_exactly_and_the_same_command_goes_on(
    mock: Any, command: Any, iibench_folder: Any, store_url: str
) -> None:
    server, data = mock("--fail-rate", 0.1), iibench_folder(100)
    words = _words(server, data, "--store", store_url)
    status, out, err = command(*words, "--max-requests", 30)
    assert status == 4
    assert "run the same command with a larger budget" in err
    stats, result = server.stats(), json.loads(out)
    assert stats["requests"] == 30  # every attempt counts
    assert result["not_sent"] + result["errors"] == 100 - stats["ok"]
    status, out, _ = command(*words, "--max-requests", 100)
    assert (status, json.loads(out)["errors"]) == (0, 0)
    assert server.stats()["ok"] == 100


def test_a_budget_of_money_is_kept(mock: Any, command: Any, iibench_folder: Any) -> None:
    server, data = mock("--latency-ms", 20), iibench_folder(200)
    (data.parent / "sightline.toml").write_text('[prices."mock"]\nprompt = 1.0\ncompletion = 10.0\n')
    status, out, _ = command(*_words(server, data, "--max-cost", 0.03))
    assert status == 4
    # The mock counts 800 tokens an image and some for the words: about 1/1000 of the unit each.
    assert 25 <= 200 - json.loads(out)["not_sent"] == server.stats()["ok"] <= 33


@pytest.mark.slow
@pytest.mark.parametrize("retry_after", [None, "1"])
def test_a_tenth_of_failures_of_every_kind_costs_no_answer(
    mock: Any, command: Any, iibench_folder: Any, retry_after: str | None
) -> None:
    told = ["--retry-after", retry_after] if retry_after else []
    server = mock("--fail-rate", 0.1, "--fail-codes", "429,500,-1,-2", "--latency-ms", 5, *told)
    data = iibench_folder(400)
    status, out, err = command(*_words(server, data))
    assert (status, json.loads(out)["errors"]) == (0, 0), err
    stats = server.stats()
    assert 20 <= stats["failed"] <= 70
    assert (stats["ok"], stats["resent"]) == (400, 0)


@pytest.mark.slow
def test_what_fails_every_time_is_listed_and_asked_again_by_the_same_command(
    mock: Any, start: Any, iibench_folder: Any
) -> None:
    """A server of which everything fails for a while is given up; nothing of it counts as an answer."""
    server, data = mock("--fail-rate", 1.0, "--fail-codes", "500,-1,-2"), iibench_folder(60)
    words = _words(server, data, "--concurrency", 64)
    status, out, err = start(*words).end()
    assert status == 1
    assert json.loads(out)["errors"] == 60
    assert "60 of 60 probes have no answer" in err
    assert "requests to the model stopped: too many failed in a row" in err
    assert server.stats()["requests"] < 100
    server.stop()
    status, out, err = start(*words, "--model-id", "x").end()
    assert (status, out) == (2, "")


@pytest.mark.slow
def test_finds_the_level_that_a_server_takes(mock: Any, start: Any, iibench_folder: Any) -> None:
    server, data = mock("--latency-ms", 100, "--max-inflight", 48), iibench_folder(1400)
    status, _, err = start(*_words(server, data, "--concurrency", 256)).end()
    stats = server.stats()
    assert status == 0, err
    assert (stats["ok"], stats["resent"]) == (1400, 0)
    assert stats["limited"] <= 0.1 * stats["requests"]
    # 1,400 calls, 48 at a time, 0.1 s each: 2.9 s at best, more on a busy machine; 10 at a time take 14 s.
    assert stats["first_to_last_s"] <= 10


@pytest.mark.slow
def test_several_addresses_one_absent_one_dying_one_slow_lose_nothing(
    mock: Any, start: Any, iibench_folder: Any
) -> None:
    data = iibench_folder(300)
    absent, dying, slow, fast = mock(), *(mock("--latency-ms", latency) for latency in (50, 200, 20))
    absent.stop()
    addresses = ",".join(server.address for server in (absent, dying, slow, fast))
    words = [
        "run",
        "iibench:none",
        "--model",
        f"{addresses}#mock",
        "--data",
        data,
        "--json",
        "--concurrency",
        8,
    ]
    process = start(*words)
    _wait_for(process, dying, 20)
    dying.stop()
    status, out, err = process.end()
    assert (status, json.loads(out)["errors"]) == (0, 0), err
    assert fast.stats()["ok"] > slow.stats()["ok"] > 10
    assert fast.stats()["resent"] == slow.stats()["resent"] == 0


@pytest.mark.slow
def test_killed_at_any_moment_it_loses_at_most_the_calls_in_flight(
    mock: Any, start: Any, iibench_folder: Any, store_url: str
) -> None:
    server, data, chance = mock("--latency-ms", 50), iibench_folder(400), random.Random(5)
    assert start(*_words(server, data, "--out", "whole", "--store", "whole.db")).end()[0] == 0
    server.reset()
    words = _words(server, data, "--out", "killed", "--concurrency", 8, "--store", store_url)
    for _ in range(4):
        process = start(*words)
        _wait_for(process, server, server.stats()["ok"] + chance.randint(0, 80))
        process.kill()
        process.end()
    assert start(*words).end()[0] == 0
    assert _results(data.parent / "killed") == _results(data.parent / "whole")
    stats = server.stats()
    # In flight at a kill: 8 calls, and what was answered and not yet committed; a server commits later.
    assert stats["resent"] <= 4 * (48 if "://" in store_url else 16)
    assert stats["ok"] == 400 + stats["resent"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """A disk of 1 MB, and how to make it larger; the test is skipped where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")

    def grow(size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)

    yield folder, grow
    subprocess.run(["umount", folder], check=True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts a small disk")
def test_a_full_disk_ends_the_run_keeps_what_was_committed_and_the_next_run_goes_on(
    mock: Any, start: Any, iibench_folder: Any, small_disk: tuple[Path, Callable[[str], None]]
) -> None:
    disk, grow = small_disk
    server, data = mock("--latency-ms", 5), iibench_folder(600)
    words = _words(server, data, "--store", disk / "s.db", "--concurrency", 8)
    status, out, err = start(*words).end()
    assert (status, out) == (3, "")
    assert len(err.strip().splitlines()) == 1
    assert "disk is full" in err
    grow("50m")
    store = Store.open(str(disk / "s.db"))
    with store.database.read() as connection:
        kept = connection.core.exec_driver_sql("SELECT count(*) FROM answers WHERE state = 1").scalar_one()
    store.close()
    assert kept > 50
    status, out, err = start(*words).end()
    assert (status, json.loads(out)["errors"]) == (0, 0)
    assert f"cached {kept}," in err


def test_broken_images_fail_their_own_samples_and_the_rest_is_answered(
    mock: Any, command: Any, iibench_folder: Any
) -> None:
    server, data = mock(), iibench_folder(40)
    records = json.loads((data / "test.json").read_text())
    names = [record["local_path"] for record in records]
    (data / names[0]).unlink()
    (data / names[1]).write_bytes(b"")
    (data / names[2]).write_text("these are words")
    _wide(data / names[3])
    outside = data.parent / "outside.png"
    outside.write_bytes((data / names[9]).read_bytes())
    records[4]["local_path"] = "images/../../outside.png"
    (data / names[5]).unlink()
    (data / names[5]).symlink_to(outside)
    (data / "test.json").write_text(json.dumps(records))
    status, out, err = command(*_words(server, data, "--out", "out"))
    assert status == 1
    assert json.loads(out)["errors"] == 12
    assert server.stats()["ok"] == 28
    said = {line["sample"]: line for line in lasting_lines(data.parent / "out" / "answers.jsonl")}
    errors = [said[f"test-{2 * number}"] for number in range(6)]
    assert {line["status"] for line in errors} == {"error"}
    for reason in (
        "no such image",
        "the file is empty",
        "not an image",
        "60000 x 4",
        "is outside the data folder",
    ):
        assert reason in err
    assert "12 of 40 probes have no answer" in err
    assert "Traceback" not in err
    # Mended, the command asks what it could not ask before, and nothing else.
    for number in (0, 1, 2, 3, 5):
        (data / names[number]).unlink(missing_ok=True)
        (data / names[number]).write_bytes((data / names[9]).read_bytes())
    records[4]["local_path"] = names[4]
    (data / "test.json").write_text(json.dumps(records))
    # A corrected record is other data, so that the results folder is replaced only on request.
    status, _, err = command(*_words(server, data, "--out", "out"))
    assert status == 2
    assert "--force" in err
    status, out, err = command(*_words(server, data, "--out", "out", "--force"))
    assert (status, json.loads(out)["errors"]) == (0, 0)
    assert "sent 12, cached 28" in err


def _wide(path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (60_000, 4)).save(path)


@pytest.fixture
def echo() -> Iterator[str]:
    """The address of a server that repeats its Authorization header in every answer and every error."""
    loop, number = asyncio.new_event_loop(), 0

    async def handle(request: web.Request) -> web.Response:
        nonlocal number
        await request.read()
        said, number = request.headers["Authorization"], number + 1
        if number % 5 == 0:
            return web.Response(status=500, text=said)
        if number % 7 == 0:
            return web.Response(status=400, text=f"bad request by {said}")
        message = {"content": f"<think>{said}</think>(B) {said}"}
        body = {
            "choices": [{"message": message, "finish_reason": "stop"}],
            "model": said,
            "system_fingerprint": said,
        }
        return web.json_response(body, headers={"X-Said": said})

    async def begin() -> int:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    port = loop.run_until_complete(begin())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{port}/v1"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.slow
def test_a_key_is_in_no_file_and_no_output_even_where_the_server_repeats_it(
    echo: str, start: Any, iibench_folder: Any
) -> None:
    data = iibench_folder(60)
    port = echo.rpartition(":")[2].removesuffix("/v1")
    (data.parent / "sightline.toml").write_text(f'[hosts."127.0.0.1:{port}"]\nkey = "MY_KEY"\n')
    words = ["run", "iibench:none", "--model", f"{echo}#m", "--data", data, "--out", "out", "--debug"]
    status, out, err = start(*words, MY_KEY=KEY).end()
    assert status == 1
    assert "[key]" in err
    kept = [path for path in data.parent.rglob("*") if path.is_file()]
    assert {"answers.jsonl", "metrics.json", "report.md", "sightline.db"} <= {path.name for path in kept}
    for words_said in (out.encode(), err.encode(), *(path.read_bytes() for path in kept)):
        assert KEY.encode() not in words_said
        assert KEY[:12].encode() not in words_said
