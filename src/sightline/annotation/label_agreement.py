"""How far annotators agree on the labels of items (II-Bench 3.2; the errors of 4.3 and of ConTextual, I)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.agreement import nominal_alpha
from sightline.annotation.decisions import settlers
from sightline.annotation.labels import Label, label_votes
from sightline.annotation.state import State
from sightline.annotation.types import Annotator
from sightline.metric_types import MetricValue

ALONE = "no item has two annotators"


class LabelAgreement(Struct, frozen=True):
    """The agreement on one label.

    Attributes:
        share: The share of pairs of annotators who agree, in percent.
    """

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
    from sightline.metrics.metric_values import clustered_mean

    several = [(cluster, labels) for cluster, labels in votes if len(labels) > 1]
    pairs = [
        (cluster, float(one == other))
        for cluster, labels in several
        for one, other in combinations(labels, 2)
    ]
    share = clustered_mean("agreement", pairs, reason=ALONE)
    alpha = nominal_alpha([labels for _, labels in several], [cluster for cluster, _ in several])
    if not several:
        alpha = replace(alpha, reason=ALONE)
    subset = f"label={name}"
    return LabelAgreement(name, replace(share, subset=subset), replace(alpha, subset=subset))
