"""What a benchmark's rules read from responses, whoever judges them: numbers, and comparisons of answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.judging.similarity import partner_groups
from sightline.types import Group, Outcome


def with_text_scores(
    groups: Iterable[Group], benchmark: Benchmark, options: Mapping[str, Any]
) -> Iterator[Group]:
    """Add the text scores of a benchmark to the outcomes of groups, and its verdicts on pairs of answers."""

    def scored(outcome: Outcome) -> Outcome:
        scores = benchmark.text_scores(outcome, options) if outcome.answered else {}
        return replace(outcome, scores={**outcome.scores, **scores}) if scores else outcome

    for group in groups:
        pairs = [v for part in (group, *partner_groups(group)) for v in benchmark.pair_verdicts(part)]
        outcomes = tuple(map(scored, group.outcomes))
        yield replace(group, outcomes=outcomes, judgements=(*group.judgements, *pairs))
