"""A comparison covers the groups and probes that both runs hold, and refuses runs of different data."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.evaluation.conftest import MakeResult

from sightline.benchmarks.base import defaults
from sightline.benchmarks.groups.benchmark import Groups
from sightline.errors import UserError
from sightline.evaluation.compare import compare, significance_of
from sightline.evaluation.folder import JudgedRun, read_judged_run
from sightline.evaluation.runs import default_options
from sightline.formats.jsonl import write_answers
from sightline.metrics.tally import SCALES
from sightline.reporting.comparison import check_rows, rows_of
from sightline.types import NOT_SENT, Group, Outcome, Usage, VerdictName

OPTIONS = {**defaults(Groups(), Groups.settings["FILE"]), "seed": 0, "embedder": "none"}
VERDICTS: dict[str, VerdictName] = {
    "1": "right",
    "0": "wrong",
    "?": "undecided",
    "!": "undecided",
    "x": "error",
    "-": "unscored",
}


def outcome(sample: str, variant: str, mark: str, digest: str = "d") -> Outcome:
    """1 is right, 0 wrong, ? undecided, x failed, - not sent."""
    missing = mark in "x-"
    return Outcome(
        sample=sample,
        variant=variant,
        draw=0,
        key=f"{sample} {variant} {mark}",
        labels={"style": variant},
        response="" if missing else f"says {mark}",
        status={"x": "error", "-": "not_sent"}.get(mark, "ok"),  # type: ignore[arg-type]
        finish_reason="stop",
        usage=Usage(),
        verdict=VERDICTS[mark],
        references=("x",),
        error={"x": "HTTP 500", "-": NOT_SENT}.get(mark),
        sample_digest=digest,
    )


@pytest.fixture
def judged_run(make_result: MakeResult) -> Any:
    """A run whose groups hold the variants v0, v1, ..., with the verdicts of `outcome`."""

    def make(groups: dict[str, str], *, name: str = "run 1", digest: str = "d", **changes: Any) -> JudgedRun:
        made = {
            (sample, 0, ""): Group(
                sample,
                0,
                sample,
                tuple(outcome(sample, f"v{i}", mark, digest) for i, mark in enumerate(marks)),
            )
            for sample, marks in groups.items()
        }
        return JudgedRun(name=name, result=make_result(**{"options": OPTIONS, **changes}), groups=made)

    return make


def acc(values: Any) -> tuple[float | None, float]:
    (value,) = (value for value in values if (value.metric, value.subset) == ("acc", "all"))
    return value.value, value.n


def test_groups_of_one_run_only_are_left_out_and_counted(judged_run: Any) -> None:
    comparison = compare([(judged_run({"a": "11", "b": "00"}), judged_run({"a": "10", "c": "11", "d": "1"}))])
    assert (acc(comparison.base), acc(comparison.other)) == ((100, 1), (50, 1))
    assert acc(comparison.differences)[0] == -50
    assert [side.lacking_samples for side in comparison.sides] == [2, 1]


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.text("10?x", min_size=1, max_size=4)] * 2), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_values_and_their_difference_cover_the_same_groups(
    judged_run: Any, marks: list[tuple[str, str]]
) -> None:
    runs = [judged_run({f"s{nth}": both[side] for nth, both in enumerate(marks)}) for side in (0, 1)]
    comparison = compare([(runs[0], runs[1])])
    base, other, changes = (
        {(value.metric, value.subset): value for value in values}
        for values in (comparison.base, comparison.other, comparison.differences)
    )
    assert base.keys() == other.keys() == changes.keys()
    for place, change in changes.items():
        before, after = base[place], other[place]
        if before.value is None or after.value is None or change.value is None:
            assert change.value is None
            continue
        assert after.value - before.value == pytest.approx(change.value, abs=1e-9), place
        assert len({(value.n, value.clusters) for value in (before, after, change)}) == 1, place
        groups = comparison.groups[place[0]][place[1]]
        scale = SCALES[before.unit]
        assert (scale * groups.before.mean(), scale * groups.after.mean()) == pytest.approx(
            (before.value, after.value)
        ), place


def test_a_group_without_a_value_in_one_run_counts_in_neither(judged_run: Any) -> None:
    """Of b the first run answered one variant only: it has no pair of answers."""
    comparison = compare([(judged_run({"a": "11", "b": "x1"}), judged_run({"a": "10", "b": "11"}))])
    values = {value.metric: value for value in comparison.other if value.subset == "all"}
    assert (values["agree"].value, values["agree"].n) == (0, 1)


def test_a_metric_that_has_values_under_labels_only_needs_by(judged_run: Any) -> None:
    comparison = compare([(judged_run({"a": "11"}), judged_run({"a": "10"}))])
    shown = rows_of(comparison, ["acc"], None)
    check_rows(["acc"], shown, comparison)
    with pytest.raises(
        UserError, match=r"agree_by_response has no row over all samples.*expected --by style"
    ):
        check_rows(["acc", "agree_by_response"], shown, comparison)


def test_a_group_is_reduced_to_the_probes_of_both_runs(judged_run: Any) -> None:
    comparison = compare([(judged_run({"a": "1"}), judged_run({"a": "10"}))])
    assert (acc(comparison.base), acc(comparison.other)) == ((100, 1), (100, 1))
    assert [side.lacking_probes for side in comparison.sides] == [1, 0]


def test_several_pairs_give_their_mean_and_each_difference(judged_run: Any) -> None:
    base = judged_run({"a": "11"})
    comparison = compare([(base, judged_run({"a": "10"})), (base, judged_run({"a": "00"}))])
    assert acc(comparison.differences)[0] == -75
    assert [acc(values)[0] for values in comparison.each] == [-50, -100]


def test_options_that_differ_are_named_with_the_values_of_each_side(judged_run: Any) -> None:
    changed = {"sampling": {"temperature": 1}, "model_arg": {"adapter": "a"}, "unchanged": False}
    other = judged_run({"a": "1"}, options={**OPTIONS, **changed}, model_identity="weights 1 adapter 2")
    base = judged_run({"a": "1"}, options={**OPTIONS, "unchanged": True})
    assert compare([(base, other)]).differing_options == {
        "unchanged": ([True], [False]),
        "temperature": ([None], [1]),
        "adapter": ([None], ["a"]),
        "identity of the model": (["weights 1"], ["weights 1 adapter 2"]),
    }


def test_settings_of_one_benchmark_are_compared(judged_run: Any) -> None:
    comparison = compare([(judged_run({"a": "1"}), judged_run({"a": "0"}, setting="yours.jsonl"))])
    assert acc(comparison.differences)[0] == -100
    assert comparison.task == "groups:mine.jsonl and groups:yours.jsonl"


def test_samples_with_different_data_are_left_out_and_named(judged_run: Any) -> None:
    base, other = judged_run({"a": "1", "b": "1"}), judged_run({"a": "1", "b": "0"})
    changed = {
        key: replace(group, outcomes=(outcome(group.id, "v0", "0", "e"),)) if group.id == "b" else group
        for key, group in other.groups.items()
    }
    comparison = compare([(base, replace(other, groups=changed))])
    assert acc(comparison.differences) == (0, 1)
    assert comparison.different_samples == ["b"]


@pytest.mark.parametrize(
    ("groups", "changes", "message"),
    [
        ({"a": "1"}, {"digest": "e"}, "hold different data for each of the 1 samples"),
        ({"a": "1"}, {"benchmark": "codis"}, "different benchmarks"),
        ({"b": "1"}, {}, "no sample in common"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    judged_run: Any, groups: dict[str, str], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        compare([(judged_run({"a": "1"}), judged_run(groups, **changes))])


def test_a_row_without_a_difference_is_not_tested(judged_run: Any) -> None:
    comparison = compare([(judged_run({"a": "1", "b": "0"}), judged_run({"a": "0", "b": "0"}))])
    undefined = [row for row in comparison.differences if row.value is None]
    assert undefined
    assert significance_of(comparison, undefined) == {}


def test_a_metric_that_needs_another_setting_is_named_with_the_reason(judged_run: Any) -> None:
    comparison = compare([(judged_run({"a": "1"}), judged_run({"a": "0"}))])
    assert "needs the answers of 'unchanged' too" in comparison.not_compared["acc_minus_sampling"]
    assert "acc_minus_sampling" not in {row.metric for row in comparison.differences}


def test_each_side_counts_undecided_failed_and_not_sent_apart(judged_run: Any) -> None:
    first, second = compare(
        [(judged_run({"a": "1?x", "b": "--"}), judged_run({"a": "111", "b": "11"}))]
    ).sides
    assert (first.probes, first.undecided, first.failed, first.not_sent) == (3, 1, 1, 2)
    assert (second.probes, second.undecided, second.failed, second.not_sent) == (3, 0, 0, 0)


@pytest.mark.parametrize(
    ("base", "other"), [("1?0", "!11"), ("??", "!0"), ("?", "!"), ("01", "!1"), ("?x", "1!")]
)
def test_bounds_are_the_extremes_over_all_ways_to_decide(judged_run: Any, base: str, other: str) -> None:
    """`!` is undecided too, about another answer."""
    bounds = compare([(judged_run({"a": base}), judged_run({"a": other}))]).undecided_bounds["acc", "all"]
    ways = [[mark if mark in "01x" else "01" for mark in marks] for marks in (base, other)]
    differences = [
        100 * (there.count("1") - here.count("1")) / len(base)
        for here in product(*ways[0])
        for there in product(*ways[1])
    ]
    assert bounds == pytest.approx((min(differences), max(differences)))


def test_without_undecided_verdicts_there_are_no_bounds(judged_run: Any) -> None:
    assert compare([(judged_run({"a": "1"}), judged_run({"a": "0"}))]).undecided_bounds == {}


def test_the_same_undecided_answer_changes_no_difference(judged_run: Any) -> None:
    run = judged_run({"a": "?1", "b": "?"})
    assert compare([(run, run)]).undecided_bounds["acc", "all"] == (0, 0)


def test_a_side_that_answered_nothing_has_no_value_and_no_difference(judged_run: Any) -> None:
    comparison = compare([(judged_run({"a": "xx"}), judged_run({"a": "11"}))])
    assert acc(comparison.base)[0] is None
    assert acc(comparison.differences) == (None, 0)
    assert comparison.sides[0].failed == 2


def test_a_run_that_sent_nothing_is_refused(judged_run: Any) -> None:
    with pytest.raises(UserError, match="no group of run 1 was sent completely"):
        compare([(judged_run({"a": "--"}), judged_run({"a": "11"}))])


def test_a_folder_in_which_nothing_was_judged_is_read(make_result: MakeResult, tmp_path: Path) -> None:
    options = default_options("groups", "mine.jsonl")
    (tmp_path / "metrics.json").write_bytes(msgspec.json.encode(make_result(options=options)))
    write_answers([outcome("a", "v0", "x")], tmp_path / "answers.jsonl")
    (tmp_path / "verdicts.jsonl").touch()
    run = read_judged_run(tmp_path)
    assert [group.judgements for group in run.groups.values()] == [()]
    assert acc(compare([(run, run)]).base) == (None, 0)
