"""Differences of two runs, within each group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from sightline.metrics.significance import PairedTally, PairedValues, difference
from sightline.metrics.tally import tally
from sightline.types import PERCENT, Group, Metric, MetricValue, Outcome, Term, Unit, Usage

PLAIN: dict[str, Any] = {"meaning": "", "better": "higher", "range": PERCENT, "source": ""}


def _outcome(variant: str, right: bool, **labels: str) -> Outcome:
    return Outcome(
        key=f"{variant} {right}",
        sample="s",
        variant=variant,
        draw=0,
        finish_reason="stop",
        usage=Usage(),
        status="ok",
        response="x",
        verdict="right" if right else "wrong",
        labels=labels,
    )


def _group(name: str, marks: str, **labels: str) -> Group:
    """A group whose variants were right where there is a 1."""
    outcomes = (
        _outcome(f"v{place}", mark == "1", **(labels or {"style": f"s{place}"}))
        for place, mark in enumerate(marks)
    )
    return Group(name, 0, name, tuple(outcomes))


def _changes(metric: Metric, runs: dict[str, tuple[str, str]], **labels: str) -> dict[str, MetricValue]:
    """By subset: the difference of groups that were before and are now as the marks say."""
    earlier = {name: _group(name, before, **labels) for name, (before, _) in runs.items()}
    later = [_group(name, after, **labels) for name, (_, after) in runs.items()]
    found = tally(later, [difference(metric, metric, lambda group: earlier[group.id])])
    return {value.subset: value for value in found}


def _paired(
    earlier: Iterable[Group], later: Iterable[Group], metric: Metric, base: Metric
) -> Mapping[str, PairedValues]:
    found = PairedTally([(metric, base)])
    for before, after in zip(earlier, later, strict=True):
        found.add(before, after)
    (values,) = found.values()
    return values


def _acc(group: Group) -> Iterator[Term]:
    for outcome in group:
        yield Term(outcome.verdict == "right", 1, outcome.labels)


@pytest.mark.parametrize(("change", "differs"), [(1e-7, False), (-1.2e-6, False), (1e-5, True)])
@pytest.mark.parametrize(("unit", "size"), [("percent", 1.0), ("number", 1e-4), ("number", 1e4)])
def test_a_change_below_single_precision_is_no_difference(
    change: float, differs: bool, unit: Unit, size: float
) -> None:
    def constant(value: float) -> Metric:
        return Metric(name="m", terms=lambda group: [Term(value, 1)], unit=unit, graded=True, **PLAIN)

    metrics = [constant(size), constant(size * (1 + change))]
    groups = [_group(str(number), "1") for number in range(6)]
    (found,) = tally(groups[:1], [difference(metrics[1], metrics[0], lambda group: group)])[:1]
    values = _paired(groups, groups, metrics[1], metrics[0])["all"]
    assert (found.value != 0, bool((values.before != values.after).any())) == (differs, differs)


def test_the_mean_difference_is_the_difference_of_the_means_for_groups_of_one_size() -> None:
    runs = {"a": ("110", "111"), "b": ("000", "001"), "c": ("101", "100")}
    changes = _changes(Metric(name="acc", terms=_acc, **PLAIN), runs)
    # 4 of 9 right before, 5 of 9 after; style s2: 1 of 3 before, 2 of 3 after; s1: 1 and 1.
    assert changes["all"].value == pytest.approx(100 * 1 / 9)
    assert changes["all"].n == 3
    assert changes["style=s2"].value == pytest.approx(100 * 1 / 3)
    assert changes["style=s1"].value == pytest.approx(0)


@pytest.mark.parametrize(
    ("before", "after", "value", "low", "high"),
    [("10", "10", 0, -27.75, 27.75), ("00", "11", 100, 60.75, 100)],
)
def test_what_changes_alike_everywhere_has_an_interval_with_a_width(
    before: str, after: str, value: float, low: float, high: float
) -> None:
    """No spread is no certainty: 27.75 % is Wilson's upper bound of 0 of 10, for gains and for losses."""
    runs = {str(number): (before, after) for number in range(10)}
    change = _changes(Metric(name="acc", terms=_acc, **PLAIN), runs)["all"]
    assert (change.value, change.clusters, change.interval) == (value, 10, "wilson")
    assert (change.low, change.high) == pytest.approx((low, high), abs=0.01)


def test_terms_without_labels_of_their_own_have_those_of_their_group() -> None:
    metric = Metric(name="all right", terms=lambda group: [Term(all(one.right for one in group), 1)], **PLAIN)
    runs = {"a": ("11", "10"), "b": ("11", "11")}
    changes = _changes(metric, runs, category="A")
    assert changes["category=A"].value == changes["all"].value == -50


def test_the_groups_own_values_are_those_that_the_difference_averages() -> None:
    runs = {"a": ("110", "111"), "b": ("000", "001"), "c": ("101", "100")}
    metric = Metric(name="acc", terms=_acc, **PLAIN)
    earlier = {name: _group(name, before) for name, (before, _) in runs.items()}
    later = [_group(name, after) for name, (_, after) in runs.items()]
    found = _paired(earlier.values(), later, metric, metric)
    changes = _changes(metric, runs)
    assert list(found) == ["all", "style=s0", "style=s1", "style=s2"]
    for subset, values in found.items():
        assert 100 * (values.after - values.before).mean() == pytest.approx(changes[subset].value)
        assert len(set(values.clusters.tolist())) == changes[subset].clusters
    assert found["style=s2"].before.tolist() == [0, 0, 1]
    assert found["style=s2"].after.tolist() == [1, 1, 0]


def test_each_run_s_own_reading_is_subtracted() -> None:
    """Two runs of the same answers that differ in what is read of them: the base's metric reads its group."""
    group = _group("a", "10")
    strict = Metric(name="read", terms=lambda group: [Term(0, 1)], **PLAIN)
    kind = Metric(name="read", terms=lambda group: [Term(1, 1)], **PLAIN)
    (change,) = [
        value
        for value in tally([group], [difference(kind, strict, lambda group: group)])
        if value.subset == "all"
    ]
    assert change.value == 100
