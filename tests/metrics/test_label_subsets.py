"""Subsets are numbered as labels appear; a label with too many values has none and takes no memory."""

from __future__ import annotations

from sightline.metrics.tally import MOST_VALUES, LabelSubsets


def test_subsets_are_ordered_by_label_and_then_by_value() -> None:
    subsets = LabelSubsets()
    assert subsets.numbers({"b": "2", "a": ("y", "x", "y")}) == [1, 2, 3]
    assert subsets.numbers({"b": "1"}) == [4]
    assert list(subsets.ordered()) == [(4, "b", "1"), (1, "b", "2"), (3, "a", "x"), (2, "a", "y")]


def test_a_label_that_identifies_groups_has_no_subsets_and_its_values_are_forgotten() -> None:
    subsets = LabelSubsets()
    for n in range(MOST_VALUES):
        assert subsets.numbers({"id": str(n), "kind": "k"}) != []
    assert len(list(subsets.ordered())) == MOST_VALUES + 1
    assert [name for n in range(1000) for name in subsets.numbers({"id": f"new {n}"})] == []
    assert [(name, value) for _, name, value in subsets.ordered()] == [("kind", "k")]
