"""The agreement of the votes of a project: alpha, how it grew, and the agreement on each label.

Votes count as they were cast before annotators saw those of others: a consensus is no agreement.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.decisions import Label, label_votes, settlers, votes_of
from sightline.annotation.state import State
from sightline.annotation.types import Annotator
from sightline.types import MetricValue

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
    """Compute the agreement, with at most `points` points of its growth; 0 for none."""
    shared = sorted(
        (number for number, of_item in votes.items() if len(of_item) > 1),
        key=lambda number: max(entry.number for entry in state.of_item(number).values()),
    )
    growth = [
        AgreementPoint(count, _alpha(state, votes, shared[:count])) for count in _steps(len(shared), points)
    ]
    return Agreement(len(shared), _alpha(state, votes, shared), growth)


def alpha_of_votes(votes: Sequence[Sequence[Hashable]], clusters: Sequence[str]) -> MetricValue:
    import numpy as np

    from sightline.metrics.association import NOMINAL_ALPHA, statistic_value

    values = list(dict.fromkeys(vote for of_item in votes for vote in of_item))
    counts = np.array([[of_item.count(value) for value in values] for of_item in votes], dtype=np.float64)
    counts = counts.reshape(len(votes), len(values))
    with np.errstate(divide="ignore", invalid="ignore"):  # One cluster has no interval.
        return statistic_value(NOMINAL_ALPHA, counts, counts.sum(axis=1), clusters)


def _alpha(state: State, votes: Mapping[int, Votes], items: Sequence[int]) -> MetricValue:
    clusters = [state.items[number].cluster or str(number) for number in items]
    return alpha_of_votes([list(votes[number].values()) for number in items], clusters)


def _steps(shared: int, points: int) -> list[int]:
    if not points or shared < 2:
        return []
    return sorted({max(2, round(shared * step / points)) for step in range(1, points + 1)})


# -- How far annotators agree on the labels of items (II-Bench 3.2; the errors of 4.3 and of ConTextual,
#    I)

ALONE = "no item has two annotators"


class LabelAgreement(Struct, frozen=True):
    """The agreement on one label; `share` is that of the pairs of annotators who agree, in percent."""

    name: str
    share: MetricValue
    alpha: MetricValue


def label_agreement(state: State, annotators: Sequence[Annotator]) -> list[LabelAgreement]:
    """Compute how far annotators agree on each label that the task declares."""
    settling, found = settlers(annotators), []
    for name in state.project.task.labels:
        votes: list[tuple[str, list[Label]]] = []
        for number, item in state.items.items():
            independent = {by: entry for by, entry in state.independent(number).items() if by not in settling}
            labels = list(label_votes(state.project.task, item, independent, name).values())
            votes.append((item.cluster or str(number), labels))
        found.append(agreement_on(name, votes))
    return found


def agreement_on(name: str, votes: Sequence[tuple[str, Sequence[Label]]]) -> LabelAgreement:
    from sightline.metrics.statistics import clustered_mean

    several = [(cluster, labels) for cluster, labels in votes if len(labels) > 1]
    pairs = [
        (cluster, float(one == other))
        for cluster, labels in several
        for one, other in combinations(labels, 2)
    ]
    share = clustered_mean("agreement", pairs, reason=ALONE)
    alpha = alpha_of_votes([labels for _, labels in several], [cluster for cluster, _ in several])
    if not several:
        alpha = replace(alpha, reason=ALONE)
    subset = f"label={name}"
    return LabelAgreement(name, replace(share, subset=subset), replace(alpha, subset=subset))
