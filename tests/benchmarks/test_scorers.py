"""Which question each benchmark decides by rules, by a judge model and by an embedder."""

from __future__ import annotations

from collections import Counter

import pytest

from sightline.benchmarks.base import defaults
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.registry import benchmark_names
from sightline.evaluation.judges import can_decide
from sightline.scoring.scorer import ModelScorer, RuleScorer, VectorScorer, by_question

QUESTIONS = ("correct", "same_meaning", "similar", "anything")

DECIDED: dict[str, dict[str, tuple[str, ...]]] = {
    "codis": {"correct": ("rules", "model"), "same_meaning": ("rules", "model")},
    "iibench": {"correct": ("rules",)},
    "contextual": {"correct": ("rules", "model")},
    "groups": {"correct": ("rules",), "same_meaning": ("model",), "similar": ("embedder",)},
    "mmr3": {"correct": ("rules",), "same_meaning": ("model",), "similar": ("embedder",)},
}
"""Benchmark -> question -> the kinds of judges that decide it. The others do not."""

TYPES = {"rules": RuleScorer, "model": ModelScorer, "embedder": VectorScorer}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", DECIDED)
def test_a_kind_of_judge_without_a_scorer_for_a_question_does_not_decide_it(name: str, question: str) -> None:
    benchmark = find_benchmark(name)
    options = defaults(benchmark, next(iter(benchmark.settings.values())))
    scorers = benchmark.scorers(options)
    kinds = [
        kind
        for kind, scorer_type in TYPES.items()
        if any(isinstance(scorer, scorer_type) and scorer.question == question for scorer in scorers)
    ]
    assert tuple(kinds) == DECIDED[name].get(question, ())
    assert can_decide(benchmark, "rules", question, options) == ("rules" in kinds)
    assert can_decide(benchmark, "openai/gpt-4o", question, options) == ("model" in kinds)
    assert can_decide(benchmark, "human:votes.jsonl", question, options)


def test_every_benchmark_of_the_package_states_what_it_decides() -> None:
    assert set(DECIDED) <= set(benchmark_names())
    for name in DECIDED:
        benchmark = find_benchmark(name)
        scorers = benchmark.scorers(defaults(benchmark, next(iter(benchmark.settings.values()))))
        assert set(Counter((scorer.question, type(scorer)) for scorer in scorers).values()) == {1}


def test_an_embedder_of_none_decides_nothing() -> None:
    groups = find_benchmark("groups")
    options = {**defaults(groups, next(iter(groups.settings.values()))), "embedder": "none"}
    assert by_question(groups.scorers(options), VectorScorer) == {}
