"""The agreement of an evaluation's judges, with each other (CODIS 5.3, Appendix A) and with themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from sightline.errors import UserError
from sightline.metric_types import MetricValue
from sightline.metrics.agreement import (
    agreement,
    agreement_with_humans,
    human_consistency,
    self_agreement,
)
from sightline.types import Verdict

MAX_PAIRED_JUDGES = 8
"""With more judges than this, pairs of judges are not compared."""

MIN_HUMANS = 4
"""The number of humans from which their consistency is reported (Appendix A)."""


def agreements(verdicts: Sequence[Verdict], clusters: Mapping[tuple[str, ...], str]) -> list[MetricValue]:
    """The agreement of every two judges and of the repeats of each, and of humans with their majority.

    Args:
        verdicts: The verdicts of all judges. Only the repeats of a judge compare other questions than
            `correct`.
        clusters: The cluster of each verdict's targets, for the confidence intervals.

    Returns:
        `agreement` with the subset 'judges=A and B' for every two judges, `agreement_with_humans` of the
        first model, `self_agreement` and `self_alpha` with the subset 'repeated_judge=A' for each judge that
        was asked repeatedly, then `human_consistency`.
    """
    by_judge: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.question == "correct":
            by_judge.setdefault(verdict.judge, []).append(verdict)
    values = [
        replace(
            agreement(by_judge[first], by_judge[second], clusters=clusters),
            subset=f"judges={first} and {second}",
        )
        for first, second in combinations(by_judge, 2)
        if len(by_judge) <= MAX_PAIRED_JUDGES
    ]
    humans = [verdict for own in by_judge.values() for verdict in own if verdict.kind == "human"]
    models = [own for own in by_judge.values() if own[0].kind == "model"]
    if humans and models:
        values.append(agreement_with_humans(humans, models[0], clusters=clusters))
    values += repeat_agreements(verdicts, clusters)
    if len({verdict.judge for verdict in humans}) >= MIN_HUMANS:
        values.append(_consistency(humans, clusters))
    return values


def repeat_agreements(
    verdicts: Sequence[Verdict], clusters: Mapping[tuple[str, ...], str]
) -> list[MetricValue]:
    """The agreement of each model with itself over its repeats.

    Args:
        verdicts: The verdicts of all judges.
        clusters: The cluster of each verdict's targets.

    Returns:
        `self_agreement` and `self_alpha` with the subset 'repeated_judge=NAME'; empty without repeats.
    """
    by_judge: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.kind == "model":
            by_judge.setdefault(verdict.judge, []).append(verdict)
    return [
        replace(value, subset=f"repeated_judge={judge}")
        for judge, own in by_judge.items()
        for value in self_agreement(own, clusters=clusters)
    ]


def _consistency(humans: Sequence[Verdict], clusters: Mapping[tuple[str, ...], str]) -> MetricValue:
    try:
        return human_consistency(humans, clusters=clusters).value
    except UserError as error:
        return MetricValue("human_consistency", "all", None, 0, 0, reason=str(error))
