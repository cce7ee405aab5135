"""How far the judges of an evaluation agree, where there are several (CODIS 5.3 and Appendix A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from sightline.errors import UserError
from sightline.metrics.agreement import agreement, human_consistency
from sightline.types import MetricValue, Verdict

MOST_JUDGES = 8
"""More judges than this are not compared pair by pair."""

RATERS = 4
"""People who must have rated the same answers before their consistency is reported (Appendix A)."""


def agreements(
    verdicts: Sequence[Verdict], clusters: Mapping[tuple[str, ...], str], seed: int
) -> list[MetricValue]:
    """Agreement of every two judges on right or not, and the people's consistency with their majority.

    Subsets read 'judges=A and B'. Empty where fewer than two judges decided anything.
    """
    given: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.question == "correct":
            given.setdefault(verdict.judge, []).append(verdict)
    values = [
        replace(
            agreement(given[first], given[second], clusters=clusters, seed=seed),
            subset=f"judges={first} and {second}",
        )
        for first, second in combinations(given, 2)
        if len(given) <= MOST_JUDGES
    ]
    humans = [verdict for own in given.values() for verdict in own if verdict.kind == "human"]
    if len({verdict.judge for verdict in humans}) >= RATERS:
        values.append(_consistency(humans, clusters, seed))
    return values


def _consistency(
    humans: Sequence[Verdict], clusters: Mapping[tuple[str, ...], str], seed: int
) -> MetricValue:
    try:
        return human_consistency(humans, clusters=clusters, seed=seed).value
    except UserError as error:
        return MetricValue("human_consistency", "all", None, 0, 0, reason=str(error))
