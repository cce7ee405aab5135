"""Groups over several indexed runs: in how many of the runs a filter selects each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from sightline.errors import UserError
from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.run_index import RunIndex
from sightline.types import GroupKey


class RecurringGroup(Struct, frozen=True):
    """A group that a filter selects in several runs.

    Attributes:
        draw: The repeat, from 0.
    """

    sample: str
    draw: int
    pooled: str
    question: str
    selected: int
    runs: int


def recurring_groups(indexes: Sequence[RunIndex], wanted: GroupFilter) -> list[RecurringGroup]:
    """Find the groups that a filter selects in most runs."""
    benchmarks = list(dict.fromkeys(index.result.benchmark for index in indexes))
    if len(benchmarks) > 1:
        raise UserError(
            "the runs belong to different benchmarks", found=benchmarks[1], expected=benchmarks[0]
        )
    runs: Counter[GroupKey] = Counter()
    selected: Counter[GroupKey] = Counter()
    questions: dict[GroupKey, str] = {}
    for index in indexes:
        chosen = set(index.numbers_of(wanted))
        for number, facts in enumerate(index.facts(), start=1):
            key = (facts.sample, facts.draw, facts.pooled)
            runs[key] += 1
            if number in chosen:
                selected[key] += 1
                questions.setdefault(key, facts.question)
    places = {key: place for place, key in enumerate(runs)}
    ordered = sorted(selected, key=lambda key: (-selected[key], places[key]))
    return [RecurringGroup(*key, questions[key], selected[key], runs[key]) for key in ordered]
