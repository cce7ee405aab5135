"""A comparison of indexed runs has the numbers of `sightline compare`, and lists the groups behind each."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.outcome_index.conftest import RunGroups

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.compare_runs import compare_runs
from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.types import ChangedGroup, ChangeList
from sightline.results.flips import LISTS, GroupChange, count_changes, group_changes


@pytest.fixture
def index(store: Store, run_groups: RunGroups) -> OutcomeIndex:
    """Two runs that are indexed and compared."""
    run_groups(seed=3)
    found = OutcomeIndex(store)
    for run in (1, 2):
        found.build(run)
    found.build_comparison(1, 2)
    return found


def test_the_numbers_are_those_of_compare(index: OutcomeIndex, store: Store) -> None:
    expected = compare_runs(store, [(1, 2)])
    found = index.comparison(1, 2)
    assert found is not None
    assert list(found.counts) == count_changes(expected.answers)
    assert [one.difference for one in found.metrics] == list(expected.differences)
    assert [one.base for one in found.metrics] == list(expected.base)
    assert [one.other for one in found.metrics] == list(expected.other)


def test_each_list_holds_the_groups_behind_its_number(index: OutcomeIndex, store: Store) -> None:
    changes = group_changes(compare_runs(store, [(1, 2)]).answers)
    summary = index.comparison(1, 2)
    assert summary is not None
    for name in get_args(ChangeList):
        listed = pages(index, name)
        expected = {change.answers[0].group[0] for change in changes if holds(name, change)}
        assert len(listed) == len(expected) == summary.lists[name]
        assert {one.other.row.sample for one in listed} == expected
        assert all(one.base.row.sample == one.other.row.sample for one in listed)
        ranks = [one.other.row.rank for one in listed]
        assert ranks == sorted(ranks)


def test_a_list_can_be_filtered(index: OutcomeIndex) -> None:
    wanted = GroupFilter(labels=(("colour", "red"),))
    found = pages(index, "lost", wanted)
    assert [one.other.row.sample for one in found] == [
        one.other.row.sample for one in pages(index, "lost") if ("colour", "red") in one.other.row.labels
    ]


def test_the_changes_by_label_add_up(index: OutcomeIndex, store: Store) -> None:
    summary = index.comparison(1, 2)
    assert summary is not None
    changes = group_changes(compare_runs(store, [(1, 2)]).answers)
    for label, counts in summary.by_label:
        assert counts.unit == "groups"
        assert counts.scored <= len(changes), label


def test_runs_that_are_not_compared_yet_are_an_error(index: OutcomeIndex) -> None:
    assert index.comparison(2, 1) is None
    with pytest.raises(UserError, match="not compared yet"):
        index.changes(2, 1, "lost")


def holds(name: ChangeList, change: GroupChange) -> bool:
    if name == "flipped":
        return any(one.change in ("gained", "lost") for one in change.answers)
    return LISTS[name](change)


def pages(index: OutcomeIndex, name: ChangeList, wanted: GroupFilter | None = None) -> list[ChangedGroup]:
    found: list[ChangedGroup] = []
    after = None
    while True:
        page = index.changes(1, 2, name, wanted or GroupFilter(), after, limit=20)
        found += page.rows
        after = page.next
        if after is None:
            assert page.total == len(found)
            return found
