"""How stable the answers to one request are over its repeats, with intervals over clusters.

A group of these metrics holds all draws of one probe: `n` answers that are scored, of which `c` are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import comb

from sightline.metrics.consistency import normalised_answers
from sightline.metrics.variants import most_frequent, plain_metric
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
        plain_metric("expected accuracy", _right, meaning="right answers, each repeat by itself"),
        plain_metric(
            "consensus accuracy", _consensus, meaning="requests whose most frequent answer is right"
        ),
        plain_metric("consistency rate", _same, meaning="requests whose repeats all give one answer"),
        plain_metric(
            "repetition consistency",
            _as_first,
            meaning="repeats that give the answer of the first one",
            source="DynaMath (RC)",
        ),
        plain_metric(
            "internal variance",
            partial(_chance, lambda n, c: c * (n - c) / (n * (n - 1)), FEWEST),
            meaning="c (n - c) / (n (n - 1)): 50 where one of two is right",
        ),
        *(plain_metric(f"pass^{k}", partial(_chance, partial(_every, k), k)) for k in counts),
        *(plain_metric(f"pass@{k}", partial(_chance, partial(_any, k), k)) for k in counts),
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
    if _counts(group)[0]:
        yield Term(any(outcome.right for outcome in most_frequent(group)), 1)


def _same(group: Group) -> Iterator[Term]:
    if group.complete:
        yield Term(len(set(normalised_answers(group))) == 1, 1)


def _as_first(group: Group) -> Iterator[Term]:
    if group.complete:
        first, *others = normalised_answers(group)
        yield Term(others.count(first), len(others))


def _chance(of_counts: Callable[[int, int], float], least: int, group: Group) -> Iterator[Term]:
    """What n and c of a request with at least `least` answers amount to, of 1 request."""
    n, c = _counts(group)
    if n >= least:
        yield Term(of_counts(n, c), 1)


def _every(k: int, n: int, c: int) -> float:
    return comb(c, k) / comb(n, k)


def _any(k: int, n: int, c: int) -> float:
    return 1 - comb(n - c, k) / comb(n, k)
