"""Ratings: which share of each responder's answers people accept, and which errors they see in them.

ConTextual reports the share that the majority of three people accepts (section 3.2.1, Table 3) and names what
is wrong with some (Appendix I); II-Bench counts the errors of wrong answers (section 4.3, Figure 4).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from sightline.judging.judge_data import Item
from sightline.metrics.metric_values import clustered_mean
from sightline.metrics.statistics import Floats
from sightline.types import MetricValue, Verdict

RESPONDER = "responder"


def accepted(items: Sequence[Item], truth: Floats, *, seed: int = 0) -> list[MetricValue]:
    """The share of each responder's answers that people accept, in percent.

    `truth` of shape (items,) is 1 where the majority accepts an answer, else 0.
    """
    given: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for item, value in zip(items, truth.tolist(), strict=True):
        for responder in item.responders:
            given[responder].append((item.cluster, value))
    return [_share("accepted", responder, values, seed) for responder, values in given.items()]


def errors(items: Sequence[Item], verdicts: Iterable[Verdict], *, seed: int = 0) -> list[MetricValue]:
    """Of each responder's answers in which somebody names an error, the share that has it, in percent.

    An answer has an error that more than half of those name who name any in it, and may have several. A
    responder's most frequent one comes first; one that no answer has is not there.
    """
    named = _named(verdicts)
    seen: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for item in items:
        # Who does not say which variant means the answer whatever it was to.
        humans = {**named.get((item.key, ""), {}), **named.get((item.key, item.variant), {})}
        if humans:
            for responder in item.responders:
                seen[responder].append((item.cluster, _agreed(humans)))
    found = []
    for responder, answers in seen.items():
        counts = Counter(error for _, has in answers for error in sorted(has))
        for error, _ in counts.most_common():
            shares = [(cluster, float(error in has)) for cluster, has in answers]
            found.append(_share(error, responder, shares, seed))
    return found


def _named(verdicts: Iterable[Verdict]) -> Mapping[tuple[str, str], Mapping[str, set[str]]]:
    """By answer and by person, the errors that the person names in it."""
    named: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for verdict in verdicts:
        if verdict.labels:
            named[verdict.targets[0], verdict.variant][verdict.judge].update(verdict.labels)
    return named


def _agreed(humans: Mapping[str, set[str]]) -> frozenset[str]:
    votes = Counter(error for errors in humans.values() for error in errors)
    return frozenset(error for error, count in votes.items() if 2 * count > len(humans))


def _share(name: str, responder: str, values: Sequence[tuple[str, float]], seed: int) -> MetricValue:
    share = clustered_mean(name, values, shares=True, reason="there is no answer", seed=seed)
    return replace(share, subset=f"{RESPONDER}={responder}")
