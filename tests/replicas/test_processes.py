"""Workers in processes of this machine: a GPU for each, started again where one ends."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from sightline.cli.main import main
from sightline.errors import EnvironmentFailedError, UserError
from sightline.models import served
from sightline.models.offline import ChanceBaseline
from sightline.replicas import fleet, worker_client
from sightline.replicas.fleet import RemoteReplica, ReplicaPool, Target
from sightline.replicas.worker_client import KEY_VARIABLE, Processes, WorkerClient, visible_gpus, worker_key
from sightline.types import Answer, Failure, Request, user

WORKER = Path(__file__).with_name("echo_worker.py")


@pytest.fixture(autouse=True)
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setattr(worker_client, "worker_words", lambda *_: [str(WORKER)])


def ask(*keys: str) -> list[Answer | Failure]:
    """Ask two workers, one request after the other."""

    async def session() -> list[Answer | Failure]:
        model = ChanceBaseline(0)
        launcher = Processes(Target(model=model, spec="mini", args={}, weights=model.identity), 2)
        results: list[Answer | Failure] = []
        async with asyncio.timeout(60), ReplicaPool(model, launcher) as pool:
            while len(pool._fleet._replicas) < 2:
                await asyncio.sleep(0.05)
            for key in keys:
                request = Request(key, (user("?"),), {})
                results += await asyncio.gather(*(_one(pool, request) for _ in range(2)))
        return results

    return asyncio.run(session())


async def _one(pool: ReplicaPool, request: Request) -> Answer | Failure:
    [(_, result)] = [pair async for pair in pool.answer([request])]
    return result


@pytest.mark.slow
def test_each_process_has_a_gpu_of_its_own_and_none_is_left() -> None:
    answers = [result for result in ask("a") if isinstance(result, Answer)]
    assert {answer.text for answer in answers} == {"5", "7"}
    for answer in answers:
        with pytest.raises(ProcessLookupError):
            os.kill(int(answer.version), 0)


@pytest.mark.slow
def test_a_process_that_ends_is_started_again_up_to_a_bound() -> None:
    with pytest.raises(EnvironmentFailedError, match="the worker ended with status 3"):
        ask("a", "end", "end", "b")


@pytest.mark.slow
def test_a_process_that_was_out_of_reach_is_asked_again() -> None:
    """A request has reported it as lost, but it lives."""

    async def session() -> None:
        model = ChanceBaseline(0)
        request = Request("a", (user("?"),), {})
        launcher = Processes(Target(model=model, spec="mini", args={}, weights=model.identity), 1)
        async with asyncio.timeout(60), ReplicaPool(model, launcher) as pool:
            before = await _one(pool, request)
            [running] = pool._fleet._replicas.values()
            assert isinstance(running.replica, RemoteReplica)
            running.replica.lose("connection reset")
            after = await _one(pool, request)
        assert isinstance(before, Answer)
        assert isinstance(after, Answer)
        assert after.version == before.version

    asyncio.run(session())


@pytest.mark.slow
def test_a_process_that_stops_answering_is_replaced_and_its_requests_are_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_client, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(worker_client, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(fleet, "HEALTH_SECONDS", 0.3)
    monkeypatch.setattr(served, "STOP_SECONDS", 0.5)

    async def session() -> None:
        model = ChanceBaseline(0)
        launcher = Processes(Target(model=model, spec="mini", args={}, weights=model.identity), 1)
        async with asyncio.timeout(60), ReplicaPool(model, launcher) as pool:
            before = await _one(pool, Request("a", (user("?"),), {}))
            assert isinstance(before, Answer)
            os.kill(int(before.version), signal.SIGSTOP)
            after = await _one(pool, Request("b", (user("?"),), {}))
        assert isinstance(after, Answer)
        assert after.version != before.version

    asyncio.run(session())


@pytest.mark.slow
def test_a_pause_of_the_driver_ends_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it computes for a minute: its look at the process fails, and the process does answer."""
    monkeypatch.setattr(worker_client, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(worker_client, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(fleet, "HEALTH_SECONDS", 0.4)
    looks: list[float] = []

    async def healthy_but_late(address: str) -> bool:
        looks.append(time.monotonic())
        if len(looks) == 1:
            time.sleep(0.8)
            return False
        return True

    monkeypatch.setattr(worker_client, "is_healthy", healthy_but_late)

    async def session() -> None:
        left: list[str] = []
        client = WorkerClient("http://127.0.0.1:1", "m", "key")
        using = asyncio.create_task(
            worker_client._use(
                cast("Any", Running()),
                "process 1",
                "http://127.0.0.1:1",
                client,
                lambda replica: None,
                lambda name, reason, is_explained=False: left.append(reason),
            )
        )
        while len(looks) < 4:
            await asyncio.sleep(0.05)
        assert not left
        using.cancel()
        await asyncio.wait({using})

    asyncio.run(session())


class Running:
    """A server process that lives."""

    ended = ""
    log = Path("log")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_worker_ends_at_once_while_its_model_is_loading(tmp_path: Path, number: int) -> None:
    module = tmp_path / "slow_worker.py"
    module.write_text(LOADS_FOR_EVER)
    command = [sys.executable, str(module), "worker", "--model", "mini", "--key-file", str(tmp_path / "key")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "loading\n"
        worker.send_signal(number)
        began = time.monotonic()
        _, errors = worker.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert worker.returncode == 130
    assert "interrupted; the model was still loading" in errors


LOADS_FOR_EVER = """
import time
from sightline.cli.main import entry
from sightline.models.local.model import LocalModel

def load(self):
    print("loading", flush=True)
    time.sleep(600)

LocalModel._load = load
entry()
"""


@pytest.mark.parametrize(
    ("value", "gpus"), [("0,3", ["0", "3"]), ("GPU-1a", ["GPU-1a"]), ("", []), ("-1", [])]
)
def test_the_gpus_are_those_that_the_environment_allows(
    monkeypatch: pytest.MonkeyPatch, value: str, gpus: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert visible_gpus() == gpus


def test_a_key_is_random_for_its_owner_only_or_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new/key"
    key, is_in_file = worker_key(file)
    assert is_in_file
    assert len(key) >= 40
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert worker_key(file) == (key, True)
    assert worker_key(tmp_path / "other")[0] != key
    file.chmod(0o644)
    with pytest.raises(UserError, match="others may read this key"):
        worker_key(file)
    monkeypatch.setenv(KEY_VARIABLE, "a key of the environment")
    assert worker_key(file) == ("a key of the environment", False)
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(UserError, match="too short"):
        worker_key(file)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "baseline/chance"], "no model that Sightline runs itself"),
        (["--model", "openai/gpt-4o"], "no model that Sightline runs itself"),
        (["--model", "minni"], "did you mean 'mini'?; expected mini, hf/ORG/NAME or hf/FOLDER"),
        (["--model", "http://127.0.0.1:1/v1#m"], "no model that Sightline runs itself"),
        (["--model", "mini", "--processes", "0"], "--processes is no number"),
        (["--model", "mini", "--port", "70000"], "--port is no port"),
        (["--model", "mini", "--host", "203.0.113.1"], "cannot listen on 203.0.113.1"),
        (
            ["--model", "mini", "--host", "nowhere.invalid"],
            "cannot listen on nowhere.invalid: Name or service",
        ),
    ],
)
def test_a_wrong_call_is_refused_with_its_reason_only(words: list[str], message: str, capsys: Any) -> None:
    assert main(["worker", *words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
