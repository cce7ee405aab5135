"""The leaderboard: which values stand beside each other, and which are not comparable."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from msgspec.structs import replace
from tests.viewer.counted_runs import run

from sightline.benchmarks.registry import benchmark_names
from sightline.benchmarks.released import published
from sightline.types import MetricValue
from sightline.viewer.leaderboard import Choice, Leaderboard, build_leaderboard

ALL = Choice(settings={})
WITHOUT_COT = "asked with cot=off; the others with the default"


def measured(table: Leaderboard) -> list[tuple[str, str, float | None, str]]:
    """Name, facts, value and reason of the measured rows."""
    return [
        (row.name, row.facts, row.cells[0].value.value if row.cells[0].value else None, row.cells[0].reason)
        for row in table.rows
        if row.kind == "measured"
    ]


def test_a_narrow_screen_can_show_each_benchmark_alone() -> None:
    style = files("sightline.viewer").joinpath("sightline.css").read_text()
    for column in range(1, 1 + len(benchmark_names())):
        assert f"main:has(#c{column}:checked) :is(.col:not(.c{column}), .no{column})" in style


def test_the_best_value_is_first_and_one_without_a_value_last() -> None:
    table = build_leaderboard([run(1, "a", 20.0), run(2, "b", None), run(3, "c", 30.0)], ALL)
    assert [name for name, *_ in measured(table)] == ["c", "a", "b"]


def test_the_latest_run_of_a_model_counts_and_other_options_are_another_row() -> None:
    runs = [run(1, "a", 20.0), run(2, "a", 30.0), run(3, "a", 10.0, {"cot": False})]
    assert measured(build_leaderboard(runs, ALL)) == [
        ("a", "", 30.0, ""),
        ("a", "cot=off", 10.0, WITHOUT_COT),
    ]


def test_a_limit_makes_no_row_and_the_run_over_most_samples_counts() -> None:
    limited = run(3, "a", 90.0, {"limit": 20, "shuffle": 1}, samples=20)
    both = [run(1, "a", 20.0), run(2, "b", 30.0), limited]
    assert measured(build_leaderboard(both, ALL)) == [("b", "", 30.0, ""), ("a", "", 20.0, "")]
    only_limited = [run(1, "b", 30.0), run(2, "c", 10.0), limited]
    (first, *_) = measured(build_leaderboard(only_limited, ALL))
    assert first == ("a", "", 90.0, "20 samples (--limit 20); the others have 353")


def test_a_whole_run_with_default_options_is_the_norm_whatever_ran_last_or_most_often() -> None:
    small = {"limit": 20}
    others = [run(n, f"limited {n}", 50.0, small, samples=20) for n in (1, 2, 3)]
    others += [run(n, f"other {n}", 60.0, {"cot": False}) for n in (5, 6)]
    for runs in ([run(4, "whole", 20.0), *others], [*others, run(7, "whole", 20.0)]):
        table = build_leaderboard(runs, ALL)
        reasons = {name: why for name, _, _, why in measured(table)}
        assert (reasons["whole"], table.columns[0].n) == ("", 353)
        assert reasons["limited 1"] == "20 samples (--limit 20); the others have 353"
        assert reasons["other 5"] == WITHOUT_COT
        assert {cell.facts for row in table.rows if row.kind == "published" for cell in row.cells} == {
            "CODIS, Table 3"
        }


def test_the_first_declared_setting_with_a_run_is_shown_first() -> None:
    runs = [run(1, "a", 20.0), *(run(n, "b", 30.0, setting="no-cot") for n in (2, 3, 4))]
    assert build_leaderboard(runs, ALL).columns[0].setting == "default"
    assert build_leaderboard(runs, Choice({"codis": "no-cot"})).columns[0].setting == "no-cot"


def test_where_all_runs_have_a_limit_each_says_so() -> None:
    runs = [run(number, f"m{number}", 5.0, {"limit": 20}, samples=20) for number in (1, 2)]
    assert {why for *_, why in measured(build_leaderboard(runs, ALL))} == {"--limit 20"}


def test_an_adapter_is_another_model_and_no_other_question() -> None:
    adapted = run(2, "a", 30.0, {"adapter": "x"}, options={"model_arg": {"adapter": "x"}})
    rows = measured(build_leaderboard([run(1, "a", 20.0), adapted], ALL))
    assert rows == [("a", "adapter=x", 30.0, ""), ("a", "", 20.0, "")]


def test_the_size_to_which_a_model_brings_images_is_its_own_and_no_other_question() -> None:
    local = run(2, "a", 30.0, {"image_processor": {"size": 64}})
    rows = measured(build_leaderboard([run(1, "baseline/chance", 20.0), local], ALL))
    assert [(name, why) for name, _, _, why in rows] == [("a", ""), ("baseline/chance", "")]


def test_a_run_without_a_value_is_no_norm_for_those_with_one() -> None:
    unscored = run(2, "b", None, samples=1399)
    table = build_leaderboard([run(1, "a", 20.0), unscored], ALL)
    assert measured(table)[0] == ("a", "", 20.0, "")


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
    none = build_leaderboard([run(1, "a", 20.0)], replace(ALL, published="off", human=False))
    assert len(none.rows) == 1


def test_the_best_human_is_a_row_of_humans_and_no_model() -> None:
    accuracy = MetricValue("accuracy", "all", 40.0, 1399, 1187, 1.0, 99.0, "wilson")
    changed: dict[str, Any] = {"setting": "none", "samples": 1399, "metrics": [accuracy]}
    table = build_leaderboard([run(1, "a", None, benchmark="iibench", **changed)], ALL)
    assert [row.name for row in table.rows if row.kind == "human"] == ["Human best", "Human"]
    assert not any("human" in row.name.lower() for row in table.rows if row.kind != "human")


def test_synthetic_data_have_no_published_rows() -> None:
    one = run(1, "a", 20.0)
    assert one.result is not None
    synthetic = replace(one, result=replace(one.result, options={"synthetic": True}))
    table = build_leaderboard([synthetic], ALL)
    assert [row.kind for row in table.rows] == ["measured"]
    assert "synthetic" in table.notes[0]


def test_the_sampling_of_a_judge_makes_no_row_and_servers_are_not_part_of_names() -> None:
    server = "http://localhost:8000/v1#"
    runs = [
        run(1, f"{server}llava", 20.0, {"judge_sampling": {"temperature": 0}}, judge=f"rules, {server}qwen"),
        run(2, f"{server}llava", 30.0, judge=f"rules, {server}qwen"),
    ]
    (row,) = build_leaderboard(runs, Choice({}, published="off", human=False)).rows
    assert (row.name, row.model, row.facts) == ("llava", f"{server}llava", "")
    assert row.cells[0].facts == "n 353 · rules, qwen"
    assert build_leaderboard(runs, Choice({}, model="localhost:8000", human=False)).rows == (row,)


def test_equal_names_on_two_servers_keep_them() -> None:
    runs = [run(1, "http://a/v1#llava", 20.0), run(2, "http://b/v1#llava", 30.0)]
    assert [name for name, *_ in measured(build_leaderboard(runs, ALL))] == [
        "http://b/v1#llava",
        "http://a/v1#llava",
    ]


def test_a_cell_says_what_undecided_verdicts_could_change() -> None:
    one = run(1, "a", 2.0, undecided=144)
    assert one.result is not None
    metrics = [replace(value, value_if_right=15.0) for value in one.result.metrics]
    undecided = replace(one, result=replace(one.result, metrics=metrics))
    cells = [row.cells[0] for row in build_leaderboard([undecided], ALL).rows if row.kind == "measured"]
    assert [cell.undecided for cell in cells] == ["144 undecided: at most 15.0"]
    decided = [row.cells[0] for row in build_leaderboard([run(1, "a", 2.0)], ALL).rows]
    assert {cell.undecided for cell in decided} == {""}
