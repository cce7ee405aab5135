"""The numbers that a benchmark's rules read from responses, whoever judges them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.types import Group, Outcome


def with_text_scores(
    groups: Iterable[Group], benchmark: Benchmark, options: Mapping[str, Any]
) -> Iterator[Group]:
    """Add the text scores of a benchmark to the outcomes of groups.

    Args:
        groups: The answered groups.
        benchmark: The benchmark (see `Benchmark.text_scores`).
        options: Its effective options.

    Yields:
        The groups, in the same order. Failed outcomes and partners stay as they are.
    """

    def scored(outcome: Outcome) -> Outcome:
        scores = benchmark.text_scores(outcome, options) if outcome.answered else {}
        return replace(outcome, scores={**outcome.scores, **scores}) if scores else outcome

    for group in groups:
        yield replace(group, outcomes=tuple(map(scored, group.outcomes)))
