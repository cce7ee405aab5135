"""The agreement of the votes of a project: alpha, and how it grew.

Votes count as they were cast before annotators saw those of others: a consensus is no agreement.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec import Struct

from sightline.annotation.decisions import settlers, votes_of
from sightline.annotation.state import State
from sightline.annotation.types import Annotator
from sightline.metric_types import MetricValue

Votes = Mapping[int, str]
"""Annotator -> vote."""


class AgreementPoint(Struct, frozen=True):
    """The agreement after a number of items with two votes or more."""

    items: int
    value: MetricValue


class Agreement(Struct, frozen=True):
    """The number of items with two votes or more, Krippendorff's alpha (nominal) of them, and its growth."""

    shared: int
    alpha: MetricValue
    growth: Sequence[AgreementPoint]


def independent_votes(
    state: State, annotators: Iterable[Annotator], items: Iterable[int]
) -> dict[int, Votes]:
    """Collect the votes that raters cast without those of others in view."""
    settling, task = settlers(annotators), state.project.task
    return {
        number: {
            by: vote for by, vote in votes_of(task, state.independent(number)).items() if by not in settling
        }
        for number in items
    }


def agreement_of(state: State, votes: Mapping[int, Votes], points: int) -> Agreement:
    """Compute the agreement.

    Args:
        points: The most points of the growth; 0 for none.
    """
    shared = sorted(
        (number for number, of_item in votes.items() if len(of_item) > 1),
        key=lambda number: max(entry.number for entry in state.of_item(number).values()),
    )
    growth = [
        AgreementPoint(count, _alpha(state, votes, shared[:count])) for count in _steps(len(shared), points)
    ]
    return Agreement(len(shared), _alpha(state, votes, shared), growth)


def nominal_alpha(votes: Sequence[Sequence[Hashable]], clusters: Sequence[str]) -> MetricValue:
    """Compute Krippendorff's alpha of votes without an order."""
    import numpy as np

    from sightline.metrics.association import NOMINAL_ALPHA
    from sightline.metrics.judge_statistics import statistic_value

    values = list(dict.fromkeys(vote for of_item in votes for vote in of_item))
    counts = np.array([[of_item.count(value) for value in values] for of_item in votes], dtype=np.float64)
    counts = counts.reshape(len(votes), len(values))
    with np.errstate(divide="ignore", invalid="ignore"):  # One cluster has no interval.
        return statistic_value(NOMINAL_ALPHA, counts, counts.sum(axis=1), clusters)


def _alpha(state: State, votes: Mapping[int, Votes], items: Sequence[int]) -> MetricValue:
    clusters = [state.items[number].cluster or str(number) for number in items]
    return nominal_alpha([list(votes[number].values()) for number in items], clusters)


def _steps(shared: int, points: int) -> list[int]:
    if not points or shared < 2:
        return []
    return sorted({max(2, round(shared * step / points)) for step in range(1, points + 1)})
