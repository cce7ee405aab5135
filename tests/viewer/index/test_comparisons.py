"""A comparison of indexed runs has the numbers of `sightline compare`, and lists the groups behind each."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.viewer.index.conftest import RunGroups

from sightline.evaluation.compare import compare_runs
from sightline.evaluation.reports import compare_words
from sightline.metrics.flips import LISTS, GroupChange, count_changes, group_changes
from sightline.reporting.comparison import comparison_notes
from sightline.store.store import Store
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_types import ChangedGroup, ChangeList, GroupFilter
from sightline.viewer.run_index import ComparedRuns


@pytest.fixture
def index(store: Store, run_groups: RunGroups) -> OutcomeIndex:
    """Two runs that are indexed and compared."""
    run_groups(seed=3)
    found = OutcomeIndex(store)
    for run in (1, 2):
        found.build(run)
    found.compare(1, 2)
    return found


@pytest.mark.slow
def test_the_numbers_are_those_of_compare(index: OutcomeIndex, store: Store) -> None:
    expected = compare_runs(store, [(1, 2)])
    found = compared(index).summary
    assert list(found.counts) == count_changes(expected.answers)
    assert [one.difference for one in found.metrics] == list(expected.differences)
    assert [one.base for one in found.metrics] == list(expected.base)
    assert [one.other for one in found.metrics] == list(expected.other)
    bounds = {(one.difference.metric, one.difference.subset): one.if_decided for one in found.metrics}
    assert {place: known for place, known in bounds.items() if known} == expected.undecided_bounds
    assert list(found.notes) == comparison_notes(expected)


@pytest.mark.slow
def test_the_tests_are_those_of_the_table_of_the_command(index: OutcomeIndex, store_url: str) -> None:
    found = {
        (one.difference.metric, one.difference.subset): one.test for one in compared(index).summary.metrics
    }
    (printed,) = compare_words(["1"], [["2"]], store_url, all_tests=False)
    assert compared(index).summary.leading == [row.metric for row in printed.rows]
    assert {place: found[place] for place in printed.tests} == printed.tests
    leading = printed.rows[0].metric
    (by_label,) = compare_words(["1"], [["2"]], store_url, metrics=[leading], by="colour", all_tests=False)
    below = {place: test for place, test in by_label.tests.items() if place[1] != "all"}
    assert below
    assert {place: found[place] for place in below} == below


@pytest.mark.slow
def test_each_list_holds_the_groups_behind_its_number(index: OutcomeIndex, store: Store) -> None:
    changes = list(group_changes(compare_runs(store, [(1, 2)]).answers))
    summary = compared(index).summary
    for name in get_args(ChangeList):
        listed = pages(index, name)
        expected = {change.answers[0].group[0] for change in changes if holds(name, change)}
        assert len(listed) == len(expected) == summary.lists[name]
        assert {one.other.row.sample for one in listed} == expected
        assert all(one.base.row.sample == one.other.row.sample for one in listed)
        places = {row.number: place for place, row in enumerate(index.open(2).page(limit=150).rows)}
        ordered = [places[one.other.row.number] for one in listed]
        assert ordered == sorted(ordered)


@pytest.mark.slow
def test_a_list_can_be_filtered(index: OutcomeIndex) -> None:
    wanted = GroupFilter(labels=(("colour", "red"),))
    found = pages(index, "lost", wanted)
    assert [one.other.row.sample for one in found] == [
        one.other.row.sample for one in pages(index, "lost") if ("colour", "red") in one.other.row.labels
    ]


@pytest.mark.slow
def test_the_changes_by_label_add_up(index: OutcomeIndex, store: Store) -> None:
    summary = compared(index).summary
    changes = list(group_changes(compare_runs(store, [(1, 2)]).answers))
    for label, counts in summary.by_label:
        assert counts.unit == "groups"
        assert counts.scored <= len(changes), label


@pytest.mark.slow
def test_only_runs_that_were_compared_have_a_comparison(index: OutcomeIndex) -> None:
    assert index.comparison(2, 1) is None
    made = index.compare(2, 1)
    found = index.comparison(2, 1)
    assert found is not None
    assert found.summary == made.summary


def compared(index: OutcomeIndex) -> ComparedRuns:
    found = index.comparison(1, 2)
    assert found is not None
    return found


def holds(name: ChangeList, change: GroupChange) -> bool:
    if name == "flipped":
        return any(one.change in ("gained", "lost") for one in change.answers)
    return LISTS[name](change)


def pages(index: OutcomeIndex, name: ChangeList, wanted: GroupFilter | None = None) -> list[ChangedGroup]:
    found: list[ChangedGroup] = []
    after = None
    while True:
        page = compared(index).page(name, wanted or GroupFilter(), after, limit=20)
        found += page.rows
        after = page.next
        if after is None:
            assert page.total == len(found)
            return found
