"""The leaderboard: which values stand beside each other, and which are not comparable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.published import published
from sightline.metric_types import PERCENT, MetricDefinition, MetricValue, Result
from sightline.outcome_index.types import IndexState, RunSummary
from sightline.results.run_list import RunLine
from sightline.web.leaderboard_table import Choice, Leaderboard, build_leaderboard

ALL = Choice(settings={})


def run(
    number: int, model: str, value: float | None, listed: Mapping[str, Any] | None = None, **changed: Any
) -> RunSummary:
    result = Result(
        benchmark="codis",
        setting="default",
        model=model,
        model_identity=model,
        judge="rules",
        options={},
        samples=353,
        probes=706,
        errors=0,
        misses=0,
        undecided=0,
        truncated=0,
        versions={},
        data_digest="d",
        metrics=[MetricValue("acc_p", "all", value, 353, 216, 1.0, 99.0, "wilson")],
        metric_definitions={"acc_p": MetricDefinition("pairs", "higher", PERCENT)},
    )
    line = RunLine(
        number=number,
        name=None,
        tags=[],
        note="",
        task="codis:default",
        model=model,
        judges=["rules"],
        started="",
        limit=None,
        options={"split": "test", **(listed or {})},
        state="",
    )
    return RunSummary(line, IndexState("ready"), replace(result, **changed), 353)


def measured(table: Leaderboard) -> list[tuple[str, str, float | None, str]]:
    """Name, facts, value and reason of the measured rows."""
    return [
        (row.name, row.facts, row.cells[0].value.value if row.cells[0].value else None, row.cells[0].reason)
        for row in table.rows
        if row.kind == "measured"
    ]


def test_the_best_value_is_first_and_one_without_a_value_last() -> None:
    table = build_leaderboard([run(1, "a", 20.0), run(2, "b", None), run(3, "c", 30.0)], ALL)
    assert [name for name, *_ in measured(table)] == ["c", "a", "b"]


def test_the_latest_run_of_a_model_counts_and_other_options_are_another_row() -> None:
    runs = [run(1, "a", 20.0), run(2, "a", 30.0), run(3, "a", 10.0, {"cot": False})]
    assert measured(build_leaderboard(runs, ALL)) == [("a", "", 30.0, ""), ("a", "cot=off", 10.0, "")]


def test_a_value_of_other_samples_data_judges_or_with_missing_answers_says_why() -> None:
    usual = [run(1, "a", 1.0), run(2, "b", 2.0)]
    for changed, words in (
        ({"samples": 20}, "20 samples; the others have 353"),
        ({"data_digest": "e"}, "other data"),
        ({"judge": "gpt"}, "judged by gpt; the others by rules"),
        ({"errors": 70}, "70 of 706 probes without an answer"),
    ):
        rows = measured(build_leaderboard([*usual, run(3, "c", 3.0, **changed)], ALL))
        reasons = {name: why for name, _, _, why in rows}
        assert words in reasons["c"]
        assert (reasons["a"], reasons["b"]) == ("", "")


def test_published_rows_and_humans_are_those_of_the_paper() -> None:
    table = build_leaderboard([run(1, "a", 20.0)], ALL)
    others = [row for row in table.rows if row.kind != "measured"]
    shown = {row.name: row.cells[0].value.value for row in others if row.cells[0].value}
    assert shown["GPT-4V"] == published("codis", "default", "GPT-4V")["acc_p", "all"][0].value
    assert shown["Human"] == published("codis", "default", "Human")["acc_p", "all"][0].value
    assert "Human 1" not in shown
    none = build_leaderboard([run(1, "a", 20.0)], replace(ALL, published=False, human=False))
    assert len(none.rows) == 1


def test_synthetic_data_have_no_published_rows() -> None:
    one = run(1, "a", 20.0)
    assert one.result is not None
    synthetic = replace(one, result=replace(one.result, options={"synthetic": True}))
    table = build_leaderboard([synthetic], ALL)
    assert [row.kind for row in table.rows] == ["measured"]
    assert "synthetic" in table.notes[0]
