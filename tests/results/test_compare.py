"""A comparison covers the groups and probes that both runs hold, and refuses runs of different data."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results.conftest import MakeResult

from sightline.benchmarks.base import defaults
from sightline.benchmarks.groups.benchmark import Groups
from sightline.errors import UserError
from sightline.results.compare import JudgedRun, compare, significance_of
from sightline.types import Group, Outcome, Usage

OPTIONS = {**defaults(Groups(), Groups.settings["FILE"]), "seed": 0, "embedder": "none"}


def outcome(sample: str, variant: str, right: bool) -> Outcome:
    return Outcome(
        sample=sample,
        variant=variant,
        draw=0,
        key=f"{sample} {variant}",
        labels={},
        response="x",
        status="ok",
        finish_reason="stop",
        usage=Usage(),
        verdict="right" if right else "wrong",
        references=("x",),
    )


@pytest.fixture
def judged_run(make_result: MakeResult) -> Any:
    """A run whose groups hold the variants v0, v1, ..., right where there is a 1."""

    def make(groups: dict[str, str], **changes: Any) -> JudgedRun:
        made = {
            name: Group(
                name, 0, name, tuple(outcome(name, f"v{i}", mark == "1") for i, mark in enumerate(marks))
            )
            for name, marks in groups.items()
        }
        result = make_result(**{"options": OPTIONS, **changes})
        return JudgedRun(result=result, groups={(name, 0): group for name, group in made.items()})

    return make


def acc(values: Any) -> tuple[float | None, float]:
    (value,) = (value for value in values if (value.metric, value.subset) == ("acc", "all"))
    return value.value, value.n


def test_groups_of_one_run_only_are_left_out_and_counted(judged_run: Any) -> None:
    runs = {1: judged_run({"a": "11", "b": "00"}), 2: judged_run({"a": "10", "c": "11"})}
    comparison = compare(runs, [(1, 2)])
    assert (acc(comparison.base), acc(comparison.other)) == ((100, 2), (50, 2))
    assert acc(comparison.differences)[0] == -50
    assert comparison.alone == 2


def test_a_group_is_reduced_to_the_probes_of_both_runs(judged_run: Any) -> None:
    comparison = compare({1: judged_run({"a": "1"}), 2: judged_run({"a": "10"})}, [(1, 2)])
    assert (acc(comparison.base), acc(comparison.other)) == ((100, 1), (100, 1))


def test_several_pairs_give_their_mean_and_each_difference(judged_run: Any) -> None:
    runs = {1: judged_run({"a": "11"}), 2: judged_run({"a": "10"}), 3: judged_run({"a": "00"})}
    comparison = compare(runs, [(1, 2), (1, 3)])
    assert acc(comparison.differences)[0] == -75
    assert [acc(values)[0] for values in comparison.each] == [-50, -100]


def test_options_that_differ_are_named_with_the_values_of_each_side(judged_run: Any) -> None:
    other = judged_run({"a": "1"}, options={**OPTIONS, "sampling": {"temperature": 1}})
    comparison = compare({1: judged_run({"a": "1"}), 2: other}, [(1, 2)])
    assert comparison.unlike == {"sampling temperature": ([None], [1])}


@pytest.mark.parametrize(
    ("groups", "changes", "message"),
    [
        ({"a": "1"}, {"data_digest": "e"}, "different data"),
        ({"a": "1"}, {"setting": "yours.jsonl"}, "different settings"),
        ({"b": "1"}, {}, "no group in common"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    judged_run: Any, groups: dict[str, str], changes: dict[str, Any], message: str
) -> None:
    runs = {1: judged_run({"a": "1"}), 2: judged_run(groups, **changes)}
    with pytest.raises(UserError, match=message):
        compare(runs, [(1, 2)])


def test_a_row_without_a_difference_is_not_tested(judged_run: Any) -> None:
    runs = {1: judged_run({"a": "1", "b": "0"}), 2: judged_run({"a": "0", "b": "0"})}
    comparison = compare(runs, [(1, 2)])
    undefined = [row for row in comparison.differences if row.value is None]
    assert undefined
    assert significance_of(comparison, undefined) == {}
