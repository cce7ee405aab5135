"""ConTextual against a local server: what is asked at every number of shots, and of which judge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.evaluation.result import recompute
from sightline.store.store import Store
from training.scenes.build import generate_contextual

Servers = Callable[..., Any]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_contextual(tmp_path_factory.mktemp("drawn") / "contextual", questions=6, val=24)


@pytest.fixture
def data(drawn: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(drawn, tmp_path / "contextual"))


def run(
    data: Path, server: Any, store: str, setting: str = "default", **options: Any
) -> sightline.Evaluation:
    options = {"split": "val", **options}
    return sightline.run(f"contextual:{setting}", model=server.model, data=data, store=store, **options)


@pytest.mark.parametrize(
    ("setting", "asked"), [("default", 24), ("0-shot", 16), ("2-shot", 16), ("8-shot", 16)]
)
def test_every_instance_is_asked_once(
    mock: Servers, data: Path, sqlite_url: str, setting: str, asked: int
) -> None:
    server = mock()
    first = run(data, server, sqlite_url, setting)
    stats = server.stats()
    assert (first.result.probes, first.result.errors) == (asked, 0)
    assert stats["requests"] == stats["with_image"] == asked
    server.reset()
    again = run(data, server, sqlite_url, setting)
    assert server.stats()["requests"] == again.counts.sent == 0
    assert again.metrics == first.metrics


def test_zero_shots_ask_nothing_that_the_default_setting_asked(
    mock: Servers, data: Path, sqlite_url: str
) -> None:
    server = mock()
    run(data, server, sqlite_url)
    server.reset()
    held_out = run(data, server, sqlite_url, "0-shot")
    assert held_out.result.samples == 16
    assert server.stats()["requests"] == held_out.counts.sent == 0


@pytest.mark.slow
@pytest.mark.parametrize("sees", [False, True])
def test_a_model_judges_with_the_image_or_without(
    mock: Servers, data: Path, tmp_path: Path, sqlite_url: str, sees: bool
) -> None:
    server, judge = mock(), mock("--words", "Judgement: Yes|Judgement: No")
    store, out = sqlite_url, tmp_path / "out"
    options: dict[str, Any] = {"judge": judge.model, "set": {"judge_image": sees}}
    first = run(data, server, store, out=out, **options)
    stats = judge.stats()
    assert stats["requests"] == 24
    assert stats["with_image"] == (24 if sees else 0)
    verdicts = [json.loads(line) for line in (out / "verdicts.jsonl").read_text().splitlines()]
    assert {verdict["verdict"] for verdict in verdicts} == {"right", "wrong"}
    judge.reset()
    assert run(data, server, store, **options).metrics == first.metrics
    opened = Store.open(store)
    try:
        assert recompute(opened).metrics == first.metrics
    finally:
        opened.close()
    assert judge.stats()["requests"] == 0
    scored = sightline.score(
        "contextual", out / "answers.jsonl", data=data, split="val", store=store, **options
    )
    assert judge.stats()["requests"] == 0
    assert scored.metrics == first.metrics


def test_a_judge_that_says_nothing_is_asked_twice_and_then_listed(
    mock: Servers, data: Path, sqlite_url: str
) -> None:
    judge = mock("--words", "I would say it depends")
    evaluation = run(data, mock(), sqlite_url, judge=judge.model)
    assert judge.stats()["requests"] == 48
    assert evaluation.result.undecided == evaluation.result.unparsed == 24
    assert any(
        "judge replies without a verdict (24 to correct): " in note for note in evaluation.result.notes
    )


def test_a_judge_whose_host_is_gone_takes_no_second_chance_from_the_next(
    mock: Servers, data: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.engine.limits.TRIAL_PAUSES", (0.01, 0.01, 0.01))
    gone = mock("--fail-rate", 1, "--fail-codes", 500)
    unsure = mock("--words", "I would say it depends")
    evaluation = run(data, mock(), sqlite_url, judge=[gone.model, unsure.model])
    assert evaluation.judge_counts.stopped == "host"
    assert evaluation.result.judge_errors == 24
    assert unsure.stats()["requests"] == 48


@pytest.mark.parametrize(
    "budget", [(), ("--max-requests", "1000")], ids=["while the model answers", "at the end"]
)
def test_a_host_of_a_judge_that_is_gone_is_named_once(
    command: Any, mock: Servers, data: Path, budget: tuple[str, ...]
) -> None:
    """The judge is opened again and again: for first requests, and for replies without a verdict."""
    there, gone = mock("--words", "yes|perhaps"), mock()
    gone.stop()
    words = ("--judge", f"{gone.address},{there.model}", "--data", data, "--split", "val", *budget)
    status, _, errors = command("run", "contextual", "--model", mock().model, "--store", "s.db", *words)
    assert status == 0
    (line,) = (line for line in errors.splitlines() if line.startswith("not used: "))
    assert str(gone.port) in line


def test_several_judges_share_one_budget(mock: Servers, data: Path, store_url: str) -> None:
    server, *judges = mock(), mock("--words", "Judgement: Yes"), mock("--words", "Judgement: No")
    options: dict[str, Any] = {"judge": [judge.model for judge in judges], "max_requests": 60}
    evaluation = run(data, server, store_url, **options)
    assert [one.stats()["requests"] for one in (server, *judges)] == [24, 24, 12]
    assert (evaluation.judge_counts.sent, evaluation.judge_counts.stopped) == (36, "budget")
    assert evaluation.exit_status == 4


def test_a_broken_image_is_one_error_and_ends_nothing(mock: Servers, data: Path, sqlite_url: str) -> None:
    (data / "images/val-003.png").unlink()
    evaluation = run(data, mock(), sqlite_url)
    assert (evaluation.result.errors, evaluation.exit_status) == (1, 1)
    (accepted,) = [m for m in evaluation.metrics if (m.metric, m.subset) == ("accepted", "all")]
    assert accepted.n == 24
