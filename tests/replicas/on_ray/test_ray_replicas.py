"""Replicas of a model as actors of Ray: the answers of one process, whatever node is lost on the way."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.models.http.raw_server import Peer, raw_server
from tests.replicas.on_ray.conftest import TwoNodes, kill_when

from sightline.cli.main import main
from sightline.config import Config
from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.registry import MINI, ModelOptions, resolve
from sightline.replicas import on_ray, ray_entry
from sightline.replicas.fleet import RemoteReplica, Replica, ReplicaLostError, Target
from sightline.replicas.ray_node import ModelCopy
from sightline.types import Answer, Failure, Request, user

pytestmark = pytest.mark.cluster

GROUPS = 12


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pairs of questions about images, in a file in the working folder."""
    monkeypatch.chdir(tmp_path)
    lines = []
    for number in range(GROUPS):
        pixels = np.random.default_rng(number).integers(0, 256, (48, 48, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(f"{number}.png")
        for variant in ("a", "b"):
            prompt = f"Which colour is number {number}{variant}?"
            line = {"group": f"g{number}", "variant": variant, "images": [f"{number}.png"], "prompt": prompt}
            lines.append(json.dumps({**line, "references": ["red"]}))
    Path("pairs.jsonl").write_text("\n".join(lines))
    return Path("pairs.jsonl")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The keys that replicas answered, and those that were lost with one; both start before the first."""
    counts: dict[str, list[str]] = {"answered": [], "lost": [], "started": []}
    start, answer = RemoteReplica.__init__, RemoteReplica.answer

    def started(replica: RemoteReplica, name: str, address: str, send: Any) -> None:
        start(replica, name, address, send)
        counts["started"].append(name)

    async def counted(replica: RemoteReplica, request: Request) -> Answer | Failure:
        while len(counts["started"]) < 2:
            await asyncio.sleep(0.05)
        try:
            result = await answer(replica, request)
        except ReplicaLostError:
            counts["lost"].append(request.key)
            raise
        counts["answered"].append(request.key)
        return result

    monkeypatch.setattr(RemoteReplica, "__init__", started)
    monkeypatch.setattr(RemoteReplica, "answer", counted)
    return counts


async def start_at_once(actor: Any, payload: bytes) -> tuple[str, str, Any]:
    """A replica whose model needs no loading."""
    return "done", "127.0.0.9", "http://127.0.0.1:9"


async def never(actor: Any) -> None:
    await asyncio.Event().wait()


async def die_after_a_second(actor: Any) -> None:
    await asyncio.sleep(1)
    os._exit(1)


async def die(actor: Any, *arguments: Any) -> None:
    os._exit(1)


def run(groups: Path, out: str, *more: str) -> int:
    words = ["run", f"groups:{groups}", "--gen", "max_tokens=4", "--out", out, "--store", f"{out}.db"]
    return main([*words, *more])


def responses(out: str) -> list[tuple[str, str, str, str]]:
    lines = map(json.loads, Path(out, "answers.jsonl").read_text().splitlines())
    return [(line["sample"], line["variant"], line["key"], line["response"]) for line in lines]


def test_a_run_on_replicas_equals_one_process_when_a_node_is_lost(
    nodes: TwoNodes,
    groups: Path,
    folder: Callable[[str], Path],
    asked: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing answered is asked twice: what is asked again was lost with its replica, and is no suspect."""
    explained: list[bool] = []
    explains = on_ray.is_of_node

    def is_of_node(error: Exception) -> bool:
        explained.append(explains(error))
        return explained[-1]

    monkeypatch.setattr(on_ray, "is_of_node", is_of_node)
    model = ["--model", f"hf/{folder('chat')}"]
    assert run(groups, "one", *model) == 0
    killed = kill_when(lambda: len(asked["answered"]) > 4, nodes)
    answer = RemoteReplica.answer
    noticed: list[float] = []

    async def answer_after_the_loss(replica: RemoteReplica, request: Request) -> Answer | Failure:
        if len(asked["answered"]) > 6:
            while killed.is_alive():
                await asyncio.sleep(0.05)
            # The workers of a node live until they notice its end.
            noticed.append(time.monotonic() + 3)
            await asyncio.sleep(max(0.0, noticed[0] - time.monotonic()))
        return await answer(replica, request)

    monkeypatch.setattr(RemoteReplica, "answer", answer_after_the_loss)
    # A few at a time, so that the node is lost while both replicas work.
    assert run(groups, "ray", *model, "--on", f"ray:{nodes.address}", "--concurrency", "2") == 0
    killed.join()
    assert responses("ray") == responses("one")
    assert len({response for _, _, _, response in responses("one")}) > GROUPS
    metrics = [json.loads(Path(out, "metrics.json").read_text())["metrics"] for out in ("ray", "one")]
    assert metrics[0] == metrics[1]
    assert Counter(asked["answered"]) == Counter(key for _, _, key, _ in responses("one"))
    printed = capsys.readouterr().err
    assert "2 replicas on Ray" in printed
    assert "has ended" in printed
    assert set(asked["lost"]) <= set(asked["answered"])
    assert asked["lost"]
    assert explained == [True]


def copy_without_the_folder(
    spec: str, args: Mapping[str, Any], identity: str, folder: str, key: str
) -> ModelCopy:
    """A node that does not have the working folder."""
    return ModelCopy(spec, args, identity, "/absent", key)


def test_a_node_without_the_folder_of_the_model_is_named(
    nodes: TwoNodes, groups: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(MINI, "model")
    monkeypatch.setattr(on_ray, "ModelCopy", copy_without_the_folder)
    assert run(groups, "ray", "--model", "hf/./model", "--on", f"ray:{nodes.address}") == 2
    assert "node 127.0.0." in capsys.readouterr().err


@pytest.mark.parametrize("fails", ["load", "answer"])
def test_a_model_that_ends_each_replica_ends_the_run(
    nodes: TwoNodes,
    groups: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fails: str,
) -> None:
    """Whether the process ends when it loads the model or when it is asked; restarts have a limit."""
    monkeypatch.setattr(ray_entry.Actor, "start", start_at_once if fails == "answer" else die)
    monkeypatch.setattr(ray_entry.Actor, "until_lost", die_after_a_second)
    Path("sightline.toml").write_text("[ray]\nreplicas = 1\nrestarts = 1\n")
    assert run(groups, "ray", "--model", "mini", "--on", f"ray:{nodes.address}") == 3
    printed = capsys.readouterr().err
    assert "none is started any more (restarts of each replica: 1)" in printed
    assert printed.count("is ready") == (2 if fails == "answer" else 0)
    assert printed.count("ended while it loaded") == (2 if fails == "load" else 0)


@pytest.mark.slow
def test_captions_of_replicas_are_those_of_one_process_where_nodes_do_not_share_the_images(
    nodes: TwoNodes, groups: Path, folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [
        "build",
        "caption",
        ".",
        "--model",
        f"hf/{folder('chat')}",
        "--gen",
        "max_tokens=8",
        "--limit",
        "4",
    ]
    assert main([*words, "--out", "one.json", "--store", "one.db"]) == 0
    Path("sightline.toml").write_text("[ray]\nreplicas = 1\n")
    monkeypatch.setattr(on_ray, "ModelCopy", copy_without_the_folder)
    ray = ["--on", f"ray:{nodes.address}", "--store", "ray.db"]
    assert main([*words, "--out", "ray.json", *ray]) == 0
    assert Path("ray.json").read_bytes() == Path("one.json").read_bytes()


def test_a_model_that_is_no_local_one_is_refused(groups: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray", reason="needs the extra `cluster`")
    server = ["--model", f"vllm/{MINI}", "--model-arg", "executable=/bin/true"]
    assert run(groups, "ray", *server, "--on", "ray") == 2
    assert "--on ray runs local models only" in capsys.readouterr().err


def test_without_a_cluster_the_message_names_the_address(
    groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray", reason="needs the extra `cluster`")
    assert run(groups, "ray", "--model", "mini", "--on", "ray:wrong") == 2
    assert "no Ray cluster at wrong" in capsys.readouterr().err


def test_replicas_that_leave_no_room_for_another_model_are_an_error(
    nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the model would wait for ever, as a judge stays open until the end."""
    monkeypatch.setattr(ray_entry.Actor, "start", start_at_once)
    monkeypatch.setattr(ray_entry.Actor, "until_lost", never)
    monkeypatch.setattr(on_ray, "START_SECONDS", 1.0)
    [model] = resolve("mini", ModelOptions())
    target = Target(model=model, spec="mini", args={}, weights=model.identity)
    judge, second = (on_ray.ray_launcher(target, nodes.address, Config()) for _ in range(2))
    ready: list[Replica] = []

    def joined(replica: Replica) -> None:
        ready.append(replica)

    async def both() -> None:
        running = asyncio.create_task(judge.run(joined, lambda name, reason, is_explained=False: None))
        while len(ready) < 2:
            await asyncio.sleep(0.1)
        try:
            await second.run(joined, lambda name, reason, is_explained=False: None)
        finally:
            running.cancel()
            await asyncio.wait({running})

    with pytest.raises(UserError, match="no room for mini: replicas of mini have the nodes"):
        asyncio.run(both())


def test_a_launcher_that_ends_ends_the_calls_of_its_replicas(
    nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray: Any = pytest.importorskip("ray", reason="needs the extra `cluster`")
    lost = tmp_path / "lost"
    [model] = resolve("mini", ModelOptions())
    target = Target(model=model, spec="mini", args={}, weights=model.identity)
    launcher = on_ray.ray_launcher(target, nodes.address, Config())
    request = Request("key", (user("Red?"),), {}, {})
    ready: list[Replica] = []

    def joined(replica: Replica) -> None:
        ready.append(replica)

    async def hang(peer: Peer) -> None:
        await asyncio.sleep(600)

    async def until_lost(actor: Any) -> None:
        while not lost.exists():
            await asyncio.sleep(0.1)
        os._exit(1)

    async def both(address: str) -> None:
        async def start(actor: Any, payload: bytes) -> tuple[str, str, str]:
            return ("failed", "127.0.0.9", "no memory") if lost.exists() else ("done", "127.0.0.9", address)

        monkeypatch.setattr(ray_entry.Actor, "start", start)
        monkeypatch.setattr(ray_entry.Actor, "until_lost", until_lost)
        running = asyncio.create_task(launcher.run(joined, lambda name, reason, is_explained=False: None))
        while len(ready) < 2:
            await asyncio.sleep(0.1)
        calls = [asyncio.create_task(replica.answer(request)) for replica in ready]
        await asyncio.sleep(0.5)
        lost.touch()
        with pytest.raises(EnvironmentFailedError, match="no memory"):
            await running
        calls.append(asyncio.create_task(ready[1].answer(request)))
        _, open_calls = await asyncio.wait(calls, timeout=60)
        assert not open_calls
        assert [type(call.exception()) for call in calls] == [ReplicaLostError] * 3
        assert not ray.is_initialized()

    async def run() -> None:
        async with raw_server(hang) as server:
            await both(server.address)

    asyncio.run(run())
