"""A budget that is reached leaves probes not sent: they are counted apart, everywhere."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sightline
from sightline.evaluation.result import Evaluation
from sightline.reporting.tables import report_markdown

GROUPS = 6


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "mine.jsonl"
    lines = [
        {"group": f"g{n}", "variant": f"v{nth}", "prompt": f"Is {n} {word}?", "references": ["yes"]}
        for n in range(GROUPS)
        for nth, word in enumerate(("even", "an even number"))
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def run(file: Path, **options: Any) -> Evaluation:
    return sightline.run(
        f"groups:{file}",
        model="baseline/chance",
        store=str(file.parent / "store.db"),
        set={"embedder": "none"},
        **options,
    )


def test_a_reached_budget_gives_the_metrics_of_the_groups_that_were_sent(file: Path, tmp_path: Path) -> None:
    done = run(file, max_requests=5, out=str(tmp_path / "part"))
    result = done.result
    assert (result.probes, result.errors, result.not_sent) == (2 * GROUPS, 0, 2 * GROUPS - 5)
    assert result.metrics[0].n == 4  # two groups are whole
    assert done.exit_status == 4
    assert f"{2 * GROUPS - 5} not sent" in report_markdown(result)
    lines = [json.loads(line) for line in (tmp_path / "part" / "answers.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines].count("not_sent") == result.not_sent
    assert {line["error"] for line in lines if line["status"] == "not_sent"} == {"not sent"}


def test_scoring_the_answers_of_a_folder_gives_its_metrics(file: Path, tmp_path: Path) -> None:
    first = run(file, max_requests=5, out=str(tmp_path / "part")).result
    answers = str(tmp_path / "part" / "answers.jsonl")
    scored = sightline.score(f"groups:{file}", answers, set={"embedder": "none"}).result
    assert msgspec.to_builtins(scored.metrics) == msgspec.to_builtins(first.metrics)
    assert (scored.errors, scored.not_sent) == (first.errors, first.not_sent)


def test_a_partner_that_was_not_sent_completely_is_named(file: Path) -> None:
    unchanged = [
        {"group": f"g{n}", "variant": "original", "prompt": f"Even: {n}?", "references": ["yes"]}
        for n in range(GROUPS)
    ]
    with file.open("a") as lines:
        lines.writelines(json.dumps(line) + "\n" for line in unchanged)
    options: dict[str, Any] = {"model": "baseline/chance", "store": str(file.parent / "store.db")}
    without = {"embedder": "none"}
    sightline.run(f"groups:{file}", **options, set={**without, "unchanged": True}, repeats=4, max_requests=9)
    one = sightline.run(f"groups:{file}", **options, set=without).result
    compared = next(metric for metric in one.metrics if metric.metric == "acc_minus_sampling")
    assert (one.not_sent, compared.n) == (0, 2)
    (note,) = [note for note in one.notes if "'unchanged'" in note]
    assert f"{GROUPS - 2} of {GROUPS} groups lack answers of setting 'unchanged'" in note


def test_each_command_has_a_budget_of_its_own_also_on_one_store(file: Path) -> None:
    options: dict[str, Any] = {
        "model": "baseline/chance",
        "store": str(file.parent / "store.db"),
        "set": {"embedder": "none"},
        "max_requests": 5,
    }

    async def twice() -> tuple[Evaluation, Evaluation]:
        first, second = (sightline.arun(f"groups:{file}", **options) for _ in range(2))
        return await asyncio.gather(first, second)

    both = asyncio.run(twice())
    assert [one.counts.sent for one in both] == [5, 5]
    assert run(file, max_requests=5).counts.sent == 2 * GROUPS - 10


def test_the_same_command_sends_the_rest(file: Path) -> None:
    run(file, max_requests=5)
    rest = run(file)
    assert (rest.counts.sent, rest.result.not_sent, rest.exit_status) == (2 * GROUPS - 5, 0, 0)
