"""1,399 real questions in batches, with failed lines and a driver killed twice, against single requests."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.models.batch_provider import RunningProvider
from tests.results import lasting_lines

QUESTIONS = 1399


@pytest.fixture
def provider() -> Iterator[RunningProvider]:
    running = RunningProvider(seconds=3.0, fail_rate=0.02)
    yield running
    running.stop()


@pytest.mark.slow
def test_real_questions_are_paid_once_although_the_driver_is_killed_twice(
    provider: RunningProvider, shared: Path, tmp_path: Path, start: Callable[..., Any]
) -> None:
    settings = "poll = 0.3, slowest_poll = 1, appears = 2, bytes = 60000000"
    (tmp_path / "sightline.toml").write_text(provider.config(settings))
    words = ["run", "iibench:none", "--data", shared / "data" / "iibench", "--model", provider.model]
    killed = []
    for moment in ("created", "download"):
        process = start(*words, "--batch", "--store", "batch.db")
        provider.set(kill=process.pid, kill_at=moment)
        killed.append(process.end(120)[0])
        print(f"driver killed at '{moment}': exit status {killed[-1]}, batches of {provider.sizes} lines")
    began = time.monotonic()
    status, _, errors = start(*words, "--batch", "--store", "batch.db", "--out", "batch").end(120)
    print(f"third run: exit status {status} after {time.monotonic() - began:.1f} s")
    print("  " + "\n  ".join(line for line in errors.splitlines() if line.strip()))
    assert (killed, status) == ([-signal.SIGKILL] * 2, 0)
    provider.set(fail_rate=0.0)
    failed = sum(count - 1 for count in provider.provider.failed.values())
    files = [len(body) for name, body in provider.provider.files.items() if "output" not in name]
    print(f"batches of {provider.sizes} lines; {failed} lines failed and were asked again")
    print(f"input files: {', '.join(f'{size / 1e6:.1f} MB' for size in files if size > 1e6)}")
    print(
        f"requests paid: {provider.paid}; paid twice: {provider.paid_twice}; live: {provider.provider.live}"
    )
    assert (provider.paid, provider.paid_twice, provider.provider.live) == (QUESTIONS, 0, 0)
    assert failed > 0
    live = start(*words, "--store", "live.db", "--out", "live").end(120)
    assert live[0] == 0
    results = [json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("batch", "live")]
    answers = [lasting_lines(tmp_path / name / "answers.jsonl") for name in ("batch", "live")]
    print(f"metrics equal those of a live run: {results[0]['metrics'] == results[1]['metrics']}")
    print(f"answers equal: {answers[0] == answers[1]} ({len(answers[0]):,} lines)")
    assert results[0]["metrics"] == results[1]["metrics"]
    assert answers[0] == answers[1]
    assert len(answers[0]) == QUESTIONS
