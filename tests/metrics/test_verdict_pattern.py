"""Metrics that declare to read verdicts only: their terms are made once for groups with equal verdicts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.benchmarks.registry import BENCHMARKS, benchmark
from sightline.evaluation.compare import PairTally
from sightline.metrics.flips import GroupPair
from sightline.metrics.tally import tally
from sightline.types import Group, Labels, Metric, MetricValue, Outcome, Usage, Verdict

LABELS: Sequence[Labels] = ({"style": "oil", "kind": ("a", "b")}, {"style": "ink", "kind": "a"}, {})
SCORES: Sequence[Mapping[str, float]] = (
    {},
    {"refused": 1.0},
    {"refused_undecided": 1.0},
    {"words up:down": 2.0, "s_gt": 0.3},
)
TASKS: dict[str, Mapping[str, Any]] = {
    **{name: {} for name in BENCHMARKS},
    "iibench": {"orders": 3},
    "mmr3": {"task": "context"},
}
del TASKS["hallusionbench"]  # Its metrics read the names of its own variants.


def _metrics(name: str) -> list[Metric]:
    found = benchmark(name)
    options = {key: option.default for key, option in found.options.items()}
    return list(found.metrics({**options, **TASKS[name]}))


def _group(rng: random.Random, number: int) -> Group:
    """A group of up to three answers that differ in all that metrics may read; half are labelled alike."""
    shared = rng.choice(LABELS) if rng.random() < 0.5 else None
    outcomes = tuple(_outcome(rng, number, place, shared) for place in range(rng.choice((1, 2, 2, 3))))
    judgements = tuple(
        Verdict(
            targets=(first.key, second.key),
            question=question,
            scorer="s",
            judge="j",
            kind="rules",
            verdict=rng.choice(("right", "wrong")),
            value=rng.choice((None, 0.8)),
            scores=rng.choice(({}, {"contradiction": 1.0})),
        )
        for question in ("similar", "same_meaning")
        for first, second in combinations(outcomes, 2)
        if rng.random() < 0.8
    )
    return Group(f"g{number}", 0, f"c{number // 3}", outcomes, judgements)


def _outcome(rng: random.Random, number: int, place: int, labels: Labels | None) -> Outcome:
    letter = rng.choice("ABC")
    return Outcome(
        sample=f"g{number}",
        variant=f"v{place}",
        draw=0,
        key=f"{number} {place}",
        labels=rng.choice(LABELS) if labels is None else labels,
        response=f"({letter}) {rng.random()}",
        status=rng.choices(("ok", "empty", "error"), (20, 2, 1))[0],
        finish_reason="stop",
        usage=Usage(),
        verdict=rng.choices(("right", "wrong", "miss", "undecided", "unscored"), (8, 8, 2, 1, 1))[0],
        extracted=rng.choice((None, "", letter, "some text")),
        references=rng.choice(((), ("A",), ("B",), ("a text", "B"))),
        options=rng.choice(((), ("a text", "another"))),
        judge="rules",
        scores=rng.choice(SCORES),
    )


def _read_directly(metrics: Sequence[Metric]) -> list[Metric]:
    return [replace(metric, reads="answers") for metric in metrics]


@pytest.mark.parametrize("name", TASKS)
def test_metrics_of_verdicts_are_those_of_the_answers(name: str) -> None:
    metrics, rng = _metrics(name), random.Random(name)
    groups = [_group(rng, number) for number in range(400)]
    assert tally(groups, metrics) == tally(groups, _read_directly(metrics))


@pytest.mark.parametrize("name", TASKS)
def test_so_are_their_differences_between_two_runs(name: str) -> None:
    rng = random.Random(name)
    groups = [_group(rng, number) for number in range(300)]
    others = [_group(rng, number) for number in range(300)]

    def compared(metrics: Sequence[Metric]) -> list[list[MetricValue]]:
        found = PairTally([(metric, metric) for metric in metrics], 1)
        for base, other in zip(groups, others, strict=True):
            found.add(0, GroupPair(base, other))
        return [side.values() for side in (found.base, found.other, found.differences)]

    metrics = [metric for metric in _metrics(name) if metric.needs is None]
    assert compared(metrics) == compared(_read_directly(metrics))
