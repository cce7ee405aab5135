"""What any benchmark whose answers have references may carry: text metrics, with their options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sightline.benchmarks.options import BenchmarkOption
from sightline.errors import unknown_name
from sightline.types import PERCENT, Group, Metric, Range, Term

NAMES = ("rouge_l", "bertscore", "bleurt")
"""The text metrics of ConTextual (3.2.2, Table 3)."""

_MEANINGS: Mapping[str, str] = {
    "rouge_l": "F1 of the longest common subsequence with the reference (ROUGE-L), x 100",
    "bertscore": "F1 of token embeddings matched with the reference (BERTScore), x 100",
    "bleurt": "similarity to the reference by a trained regression model (BLEURT), x 100",
}
_RANGES: Mapping[str, Range] = {
    "rouge_l": PERCENT,
    "bertscore": (-100.0, 100.0),
    "bleurt": (None, None),
}

NONE = "none"

TEXT_METRICS: Mapping[str, BenchmarkOption] = {
    "text_metrics": BenchmarkOption(NONE, f"similarity to the references: some of {','.join(NAMES)}"),
    "bertscore_model": BenchmarkOption(
        "all-MiniLM-L6-v2", "encoder of bertscore: a folder, or a name of the Hub"
    ),
    "bertscore_layer": BenchmarkOption(
        None, "layer of that encoder; null: bert-score's own, else the last", least=1
    ),
    "bleurt_model": BenchmarkOption(
        None, "checkpoint of bleurt (one regression output): a folder, or a name of the Hub"
    ),
}
"""The `--set` keys of the text metrics, for the options of a benchmark."""


def chosen(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the text metrics that these options ask for, each once; none where they have no such key.

    Raises UserError for one that does not exist.

    >>> chosen({"text_metrics": "bertscore,rouge_l"})
    ('bertscore', 'rouge_l')
    """
    said = str(options.get("text_metrics", NONE))
    names = tuple(dict.fromkeys(name.strip() for name in said.split(",") if name.strip()))
    if names in ((), (NONE,)):
        return ()
    for name in names:
        if name not in NAMES:
            raise unknown_name("text metric", name, NAMES)
    return names


def text_metrics(options: Mapping[str, Any]) -> list[Metric]:
    """The text metrics that these options ask for: the mean over the answers that have references, x 100.

    An answer that failed is left out; of several references the nearest counts.
    """
    return [
        Metric(
            name=name,
            terms=_mean_of(name),
            meaning=_MEANINGS[name],
            better="higher",
            range=_RANGES[name],
            source="ConTextual 3.2.2, Table 3",
            judged=None,
            absent="no answers with references to hold them against",
        )
        for name in chosen(options)
    ]


def _mean_of(name: str) -> Callable[[Group], Iterator[Term]]:
    def terms(group: Group) -> Iterator[Term]:
        for outcome in group:
            if name in outcome.scores:
                yield Term(outcome.scores[name] / 100, 1, outcome.labels)

    return terms
