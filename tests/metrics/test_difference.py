"""Differences of two runs, within each group."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sightline.metrics.difference import BASE, difference
from sightline.metrics.tally import tally
from sightline.types import Group, Metric, Outcome, Term, Usage


def _outcome(variant: str, right: bool, **labels: str) -> Outcome:
    return Outcome(
        key=f"{variant} {right}",
        sample="s",
        variant=variant,
        draw=0,
        group="s/0",
        finish_reason="stop",
        usage=Usage(),
        status="ok",
        response="x",
        verdict="right" if right else "wrong",
        labels=labels,
    )


def _group(name: str, before: str, after: str) -> Group:
    """A group whose variants were right where there is a 1."""
    outcomes = [
        tuple(_outcome(f"v{place}", mark == "1", style=f"s{place}") for place, mark in enumerate(marks))
        for marks in (before, after)
    ]
    return Group(name, 0, name, outcomes[1], partners={BASE: outcomes[0]})


def _acc(group: Group) -> Iterator[Term]:
    for outcome in group:
        yield Term(outcome.verdict == "right", 1, outcome.labels)


def test_the_mean_difference_is_the_difference_of_the_means_for_groups_of_one_size() -> None:
    groups = [_group("a", "110", "111"), _group("b", "000", "001"), _group("c", "101", "100")]
    metric = Metric("acc", _acc, source="")
    changes = {value.subset: value for value in tally(groups, [difference(metric)])}
    # 4 of 9 right before, 5 of 9 after; style s2: 1 of 3 before, 2 of 3 after; s1: 1 and 1.
    assert changes["all"].value == pytest.approx(100 * 1 / 9)
    assert changes["all"].n == 3
    assert changes["style=s2"].value == pytest.approx(100 * 1 / 3)
    assert changes["style=s1"].value == pytest.approx(0)
    assert changes["all"].low is not None
    assert changes["all"].high is not None
    assert changes["all"].low <= changes["all"].value <= changes["all"].high


def test_the_interval_of_equal_runs_is_nothing() -> None:
    groups = [_group(str(number), "10", "10") for number in range(20)]
    (change, *_) = tally(groups, [difference(Metric("acc", _acc, source=""))])
    assert (change.value, change.low, change.high) == (0, 0, 0)
