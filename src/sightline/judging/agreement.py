"""The agreement of an evaluation's judges, with each other (CODIS 5.3, Appendix A) and with themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from msgspec.structs import replace

from sightline.errors import UserError
from sightline.metric_types import MetricValue
from sightline.metrics.agreement import (
    CORRECT,
    agreement,
    agreement_with_humans,
    human_consistency,
    self_agreement,
)
from sightline.metrics.verdict_codes import Rater, VerdictCodes

MAX_PAIRED_JUDGES = 8
"""With more judges than this, pairs of judges are not compared."""

MIN_HUMANS = 4
"""The number of humans from which their consistency is reported (Appendix A)."""


def agreements(codes: VerdictCodes) -> list[MetricValue]:
    """The agreement of every two judges and of the repeats of each, and of humans with their majority."""
    judges = codes.raters.get(CORRECT, ())
    values = [
        replace(agreement(codes, first, second), subset=f"judges={first.name} and {second.name}")
        for first, second in combinations(judges, 2)
        if len(judges) <= MAX_PAIRED_JUDGES
    ]
    humans = [judge for judge in judges if judge.kind == "human"]
    models = [judge for judge in judges if judge.kind == "model"]
    if humans and models:
        values.append(agreement_with_humans(codes, humans, models[0]))
    values += [
        replace(value, subset=f"repeated_judge={judge.name}")
        for judge in codes.codes
        if judge.kind == "model"
        for value in self_agreement(codes, judge)
    ]
    if len(humans) >= MIN_HUMANS:
        values.append(_consistency(codes, humans))
    return values


def _consistency(codes: VerdictCodes, humans: Sequence[Rater]) -> MetricValue:
    try:
        return human_consistency(codes, humans).value
    except UserError as error:
        return MetricValue("human_consistency", "all", None, 0, 0, reason=str(error))
