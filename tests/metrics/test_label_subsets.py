"""Subsets are numbered as labels appear; a label with too many values has none and takes no memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sightline.evaluation.options import split_condition
from sightline.metrics.tally import MOST_VALUES, LabelSubsets
from sightline.types import JUDGE_PARTS, split_subset, subset_name


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


NAMES = st.text(st.sampled_from('ab="\\ []judge'), max_size=8) | st.sampled_from(JUDGE_PARTS)


@given(NAMES, NAMES)
def test_the_name_of_a_subset_gives_back_its_label_and_value(label: str, value: str) -> None:
    found = split_subset(subset_name(label, value))
    assert found == (f'"{label}"' if label in JUDGE_PARTS else label, value)


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_subsets_never_have_one_name(label: str, value: str, other: str, second: str) -> None:
    names = {subset_name(label, value), subset_name(other, second)}
    assert len(names) == len({(label, value), (other, second)})
    assert names.isdisjoint({"all", *(f"{part}={value}" for part in JUDGE_PARTS)})


@given(NAMES, NAMES)
def test_a_condition_names_a_subset_as_a_result_does(label: str, value: str) -> None:
    subset = subset_name(label, value)
    assert split_condition(f"acc[{subset}]<60") == ("acc", subset, "<60")
