"""`--dry-run` against what the run then sends and costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.cli.main import main
from training.scenes.build import generate_codis

WORDS = "|".join(f"It shows {'very ' * (number % 7)}old things." for number in range(50))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return generate_codis(tmp_path / "codis", pairs=30)


def estimate(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["run", "codis", *words, "--dry-run", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
def test_the_expected_cost_is_near_what_the_run_costs_and_below_that_at_full_length(
    data: Path, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server, judge = mock("--words", WORDS), mock("--words", "yes|no")
    Path("sightline.toml").write_text(
        f'[prices."mock"]\nprompt = 1.0\ncompletion = 100.0\n'
        f'[models.judge]\nspec = "{judge.model}"\n[prices.judge]\nprompt = 2.0\ncompletion = 50.0\n'
    )
    words = ["--model", server.model, "--judge", "judge", "--data", str(data)]
    options: dict[str, Any] = {"model": server.model, "judge": "judge", "data": data}
    sightline.run("codis", limit=10, **options)
    told = estimate(capsys, *words)
    assert (told["requests"], told["cached"], told["to_ask"], told["checks"]) == (60, 20, 40, 3)
    (note,) = told["notes"]
    assert note.endswith("fewer where answers are equal; at most: again for each undecided reply")
    run = sightline.run("codis", **options)
    assert run.counts.sent == told["to_ask"] + told["checks"]
    assert run.counts.cost == pytest.approx(told["expected_cost"], rel=0.2)
    assert run.counts.cost <= told["full_length_cost"]
    (judged,) = told["judges"]
    assert 0 < run.judge_counts.sent <= judged["to_ask"] + judged["checks"]
    assert run.judge_counts.cost == pytest.approx(judged["expected_cost"], rel=0.5)
    total = run.counts.cost + run.judge_counts.cost
    assert total <= told["total_full_length_cost"]
    assert told["total_expected_cost"] == pytest.approx(told["expected_cost"] + judged["expected_cost"])
    after = estimate(capsys, *words)
    assert (after["to_ask"], after["judges"][0]["to_ask"]) == (0, 0)
    assert after["judges"][0]["requests"] == run.judge_counts.cached + run.judge_counts.answered


def test_a_missing_price_and_an_unknown_length_are_named(
    data: Path, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock("--words", WORDS)
    Path("sightline.toml").write_text('[prices."mock"]\nprompt = 1.0\ncompletion = 100.0\n')
    words = ["--model", server.model, "--data", str(data)]
    told = estimate(capsys, *words)
    assert told["expected_cost"] is None
    assert told["full_length_cost"] > 60 * 1024 * 100 / 1e6
    assert "expected cost, is unknown" in told["notes"][0]
    both = estimate(capsys, *words, "--judge", "openai/gpt-4o")
    assert both["judges"][0]["to_ask"] == 90, "60 answers, and 30 pairs of answers"
    assert both["total_full_length_cost"] is None
    assert any(note.startswith("no price for openai/gpt-4o: its cost is missing") for note in both["notes"])
    sightline.run("codis:no-cot", model=server.model, data=data)
    other = estimate(capsys, *words)
    assert other["expected_cost"] is not None
    assert "expected lengths of answers: from run 1 (codis:no-cot)" in other["notes"]


def test_a_run_that_sends_nothing_costs_nothing_also_without_a_price(
    data: Path, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server, judge = mock("--words", WORDS), mock("--words", "yes|no")
    Path("sightline.toml").write_text(f'[models.judge]\nspec = "{judge.model}"\n')
    sightline.run("codis", limit=5, model=server.model, judge="judge", data=data)
    words = ["--model", server.model, "--judge", "judge", "--data", str(data), "--limit", "5"]
    told = estimate(capsys, *words)
    for one in (told, *told["judges"]):
        assert (one["to_ask"], one["checks"], one["expected_cost"], one["full_length_cost"]) == (0, 0, 0, 0)
    assert (told["total_expected_cost"], told["total_full_length_cost"]) == (0, 0)
