"""Text metrics and their options, for any benchmark whose answers have references."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sightline.benchmarks.options import BenchmarkOption
from sightline.errors import unknown_name
from sightline.metric_types import (
    PERCENT,
    Metric,
    Range,
    Term,
)
from sightline.types import Group

NAMES = ("rouge_l", "bertscore", "bleurt")
"""The text metrics of ConTextual (3.2.2, Table 3)."""

_MEANINGS: Mapping[str, str] = {
    "rouge_l": "F1 of the longest common subsequence with the reference (ROUGE-L), x 100",
    "bertscore": "F1 of token embeddings matched with the reference (BERTScore), x 100",
    "bleurt": "similarity to the reference by a trained regression model (BLEURT), x 100",
}
_RANGES: Mapping[str, Range] = {
    "rouge_l": PERCENT,
    "bertscore": (None, None),  # an F1 of cosines leaves -100 to 100 if precision and recall differ in sign
    "bleurt": (None, None),
}

NONE = "none"

TEXT_METRICS: Mapping[str, BenchmarkOption] = {
    "text_metrics": BenchmarkOption(NONE, f"similarity to the references: some of {','.join(NAMES)}"),
    "bertscore_model": BenchmarkOption(
        "all-MiniLM-L6-v2", "encoder of bertscore: a folder, or a name of the Hub"
    ),
    "bertscore_layer": BenchmarkOption(
        None, "layer of that encoder; null: bert-score's own layer for this model, or the last", least=1
    ),
    "bleurt_model": BenchmarkOption(
        None, "checkpoint of bleurt (one regression output): a folder, or a name of the Hub"
    ),
}
"""The `--set` keys of the text metrics, for `Benchmark.options`."""


def requested_metrics(options: Mapping[str, Any]) -> tuple[str, ...]:
    """List the text metrics that the options request.

    >>> requested_metrics({"text_metrics": "bertscore,rouge_l"})
    ('bertscore', 'rouge_l')
    """
    listed = str(options.get("text_metrics", NONE))
    names = tuple(dict.fromkeys(name.strip() for name in listed.split(",") if name.strip()))
    if names in ((), (NONE,)):
        return ()
    for name in names:
        if name not in NAMES:
            raise unknown_name("text metric", name, NAMES)
    return names


def text_metrics(options: Mapping[str, Any]) -> list[Metric]:
    """Define the text metrics that the options request: means over the answers that have references, x 100.

    Failed answers are left out. Of several references, the most similar one counts.
    """
    return [
        Metric(
            name=name,
            terms=_mean_of(name),
            meaning=_MEANINGS[name],
            better="higher",
            range=_RANGES[name],
            graded=True,
            source="ConTextual 3.2.2, Table 3",
            judged=None,
            absent="no answer has a reference",
        )
        for name in requested_metrics(options)
    ]


def _mean_of(name: str) -> Callable[[Group], Iterator[Term]]:
    def terms(group: Group) -> Iterator[Term]:
        for outcome in group:
            if name in outcome.scores:
                yield Term(outcome.scores[name] / 100, 1, outcome.labels)

    return terms
