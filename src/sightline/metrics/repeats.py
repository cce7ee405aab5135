"""How stable the answers to one request are over its repeats, with intervals over clusters.

A group of these metrics holds all draws of one probe: `n` answers that are scored, of which `c` are right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import comb

from sightline.metrics.consistency import normalised_answers
from sightline.types import Group, Metric, Outcome, Term

FEWEST = 2
"""The answers of one request that can differ."""


def repeated_probes(groups: Iterable[Group]) -> list[Group]:
    """Each request with the answers of all its draws; those that were asked once only are left out."""
    probes: dict[tuple[str, str, str], list[Outcome]] = {}
    for group in groups:
        for outcome in group:
            probes.setdefault((group.id, outcome.variant, group.cluster), []).append(outcome)
    return [
        Group(name, 0, cluster, tuple(outcomes), pooled=variant)
        for (name, variant, cluster), outcomes in probes.items()
        if len(outcomes) >= FEWEST
    ]


def repeat_metrics(most: int) -> Sequence[Metric]:
    """The metrics of requests with up to `most` answers: k of pass^k and pass@k is 2, 4, 8, ..., `most`."""
    counts = sorted({*(2**power for power in range(1, most.bit_length())), most})
    return (
        _metric("expected accuracy", _right, "right answers, each repeat by itself"),
        _metric("consensus accuracy", _consensus, "requests whose most frequent answer is right"),
        _metric("consistency rate", _same, "requests whose repeats all give one answer"),
        _metric("internal variance", _variance, "c (n - c) / (n (n - 1)): 50 where one of two is right"),
        *(_metric(f"pass^{k}", partial(_every, k)) for k in counts),
        *(_metric(f"pass@{k}", partial(_any, k)) for k in counts),
    )


def _metric(name: str, terms: Callable[[Group], Iterator[Term]], meaning: str = "") -> Metric:
    return Metric(
        name=name, terms=terms, meaning=meaning, better="neither", source="beyond the papers", judged=None
    )


def _counts(group: Group) -> tuple[int, int]:
    """n and c; 0 and 0 if an answer has no verdict."""
    if not all(outcome.scored for outcome in group):
        return 0, 0
    return len(group), sum(outcome.right for outcome in group)


def _right(group: Group) -> Iterator[Term]:
    n, c = _counts(group)
    if n:
        yield Term(c, n)


def _consensus(group: Group) -> Iterator[Term]:
    """Of equally frequent answers the first counts, a missing one never."""
    if _counts(group)[0]:
        answered = [
            (text, outcome.right)
            for text, outcome in zip(normalised_answers(group), group, strict=True)
            if outcome.answered
        ]
        commonest = [text for text, _ in Counter(text for text, _ in answered).most_common(1)]
        yield Term(any(right for text, right in answered if text in commonest), 1)


def _same(group: Group) -> Iterator[Term]:
    if group.complete:
        yield Term(len(set(normalised_answers(group))) == 1, 1)


def _variance(group: Group) -> Iterator[Term]:
    n, c = _counts(group)
    if n:
        yield Term(c * (n - c) / (n * (n - 1)), 1)


def _every(k: int, group: Group) -> Iterator[Term]:
    n, c = _counts(group)
    if n >= k:
        yield Term(comb(c, k) / comb(n, k), 1)


def _any(k: int, group: Group) -> Iterator[Term]:
    n, c = _counts(group)
    if n >= k:
        yield Term(1 - comb(n - c, k) / comb(n, k), 1)
