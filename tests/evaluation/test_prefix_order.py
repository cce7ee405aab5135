"""Requests are sent in an order in which a server's prefix cache helps most, and equal ones once."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.prefix_cache_server import PrefixCacheServer, cached_tokens

import sightline
from sightline.cli.main import main
from sightline.evaluation.result import Evaluation

BLOCKS = 200
"""The size of the cache: four prompts with an image."""


def _run(servers: Sequence[PrefixCacheServer], task: str, tmp_path: Path, **options: Any) -> Evaluation:
    async def run() -> Evaluation:
        async with AsyncExitStack() as stack:
            addresses = [await stack.enter_async_context(server.running()) for server in servers]
            return await sightline.arun(
                task,
                model=f"{','.join(addresses)}#m",
                store=str(tmp_path / "s.db"),
                fingerprint="off",
                canary="off",
                judge=["rules"],
                **options,
            )

    return asyncio.run(run())


def _compare(server: PrefixCacheServer) -> tuple[float, float]:
    """The tokens that were cached, and those of a random order, as shares of the best possible order's."""
    prompts = server.prompts
    shuffled = random.Random(0).sample(prompts, len(prompts))
    best = cached_tokens(sorted(prompts), BLOCKS)
    # No order has more than a cache that holds everything.
    assert best == cached_tokens(prompts)
    return server.cached / best, cached_tokens(shuffled, BLOCKS) / best


@pytest.mark.parametrize("concurrency", [1, 16])
def test_pairs_of_codis_find_their_image_in_the_cache(shared: Path, tmp_path: Path, concurrency: int) -> None:
    """The image comes before the text, so that both contexts share its tokens."""
    server = PrefixCacheServer(BLOCKS, seconds=lambda: 0.002 * (concurrency > 1))
    data = str(shared / "data" / "codis")
    _run([server], "codis", tmp_path, data=data, limit=150, concurrency=concurrency)
    assert len(server.prompts) == 300
    ours, shuffled = _compare(server)
    assert ours > 0.99
    assert shuffled < 0.1


@pytest.mark.parametrize("concurrency", [1, 16])
def test_rephrasings_and_questions_of_one_image_are_sent_together(
    shared: Path, tmp_path: Path, concurrency: int
) -> None:
    """Also where the groups of an image are far from each other in the file."""
    folder = shared / "data" / "coco"
    names = []
    for image in sorted(folder.rglob("*.jpg"))[:30]:
        shutil.copy(image, tmp_path)
        names.append(image.name)
    assert len(names) == 30
    questions = ["What is in the image?", "How many people are there?", "Where was it taken?"]
    lines = [
        {"group": f"{name} {question}", "variant": f"r{number}", "images": [name], "prompt": start + question}
        for question in questions
        for name in names
        for number, start in enumerate(("", "Please tell me: ", "Look at the image. "))
    ]
    shown = {"options": ["yes", "no"], "references": ["A"]}
    file = tmp_path / "groups.jsonl"
    file.write_text("".join(json.dumps(line | shown) + "\n" for line in lines))
    server = PrefixCacheServer(BLOCKS, seconds=lambda: 0.002 * (concurrency > 1))
    _run([server], f"groups:{file}", tmp_path, concurrency=concurrency)
    assert len(server.prompts) == 270
    ours, shuffled = _compare(server)
    assert ours > 0.99
    assert shuffled < 0.2


def test_an_image_goes_to_one_of_several_hosts(shared: Path, tmp_path: Path) -> None:
    """Also where their answers take different times, so that no host takes every second call."""
    chance = random.Random(0)
    servers = [PrefixCacheServer(seconds=lambda: chance.uniform(0.001, 0.02)) for _ in range(3)]
    data = str(shared / "data" / "codis")
    _run(servers, "codis", tmp_path, data=data, limit=150, concurrency=8)
    assert min(len(server.prompts) for server in servers) > 60
    best = cached_tokens(prompt for server in servers for prompt in server.prompts)
    assert sum(server.cached for server in servers) > 0.95 * best


def test_the_summary_and_the_run_say_what_equal_requests_saved(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its context, each pair of CODIS is one request."""
    server = PrefixCacheServer()
    config = tmp_path / "sightline.toml"
    config.write_text("[prices.m]\nprompt = 100.0\ncompletion = 1000000.0\n")
    store = str(tmp_path / "s.db")

    async def run() -> int:
        async with server.running() as address:
            words = ["run", "codis:no-context", "--model", f"{address}#m", "--judge", "rules", "--quiet"]
            words += ["--data", str(shared / "data" / "codis"), "--limit", "20", "--concurrency", "1"]
            words += ["--store", store, "--config", str(config), "--fingerprint", "off"]
            words += ["--model-id", "m"]
            return await asyncio.to_thread(main, words)

    assert asyncio.run(run()) == 0
    sent = len(server.prompts)
    assert sent < 20  # Some pairs share image and question, too.
    err = capsys.readouterr().err
    assert f"{40 - sent} requests not sent, because equal ones were, " in err
    assert main(["runs", "show", "1", "--store", store, "--json"]) == 0
    requests = json.loads(capsys.readouterr().out)["requests"]
    assert (requests["sent"], requests["equal"]) == (sent, 40 - sent)
    assert main(["report", "1", "--store", store]) == 0
    assert f"run 1: {40 - sent} requests not sent, because equal ones were, " in capsys.readouterr().err
    # The next run sends nothing, so that it saves nothing.
    assert asyncio.run(run()) == 0
    assert "equal ones" not in capsys.readouterr().err
