"""Whether similarity can tell the short answers of a run apart: the metric `confused`, and its warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sightline.scoring.similarity import THRESHOLD
from sightline.scoring.text import normalised
from sightline.types import PERCENT, MetricDefinition, MetricValue

if TYPE_CHECKING:
    from sightline.scoring.scorer import Vectors

CONFUSED = "confused"

SHORT = 5
"""The number of words up to which a text is short."""

MOST_TEXTS = 1000
"""The number of distinct texts, the most frequent ones, that are compared with each other."""

MOST_KEPT = 20_000
"""The number of distinct short texts, the first ones, that are counted: more would take memory with each."""

UNRELIABLE = 10.0
"""The value of `confused`, in percent, above which similarity metrics are unreliable.

Real short answers that similarity tells apart have at most 0.5 (OK-VQA, indoor scenes, COCO categories,
landmarks); answers that it confuses have 15 (InfographicVQA, many numbers) to 100 (yes and no, letters).
"""

DEFINITIONS: Mapping[str, MetricDefinition] = {
    CONFUSED: MetricDefinition(
        meaning="pairs of different short texts of the run (answers, references) that count as similar",
        better="neither",
        range=PERCENT,
        source="beyond the paper",
    )
}


class ComparedTexts:
    """The texts of a run that are compared by similarity: how many, and how often each short one occurs."""

    def __init__(self) -> None:
        self.total = 0
        self.short = 0
        self.counts: Counter[str] = Counter()

    def add(self, text: str, count: int = 1) -> None:
        self.total += count
        if len(text.split()) <= SHORT:
            self.short += count
            if text in self.counts or len(self.counts) < MOST_KEPT:
                self.counts[text] += count


def confused(texts: ComparedTexts, clusters: int, vectors: Callable[[Sequence[str]], Vectors]) -> MetricValue:
    """How often two different short texts, drawn at random from those of a run, count as similar.

    Texts are different if they differ after normalisation.

    Args:
        clusters: The number of clusters that they come from.
        vectors: Returns the unit vectors of some of the texts, shape (texts, dimensions).

    Returns:
        The value in percent, with the number of pairs as n. None with a reason if fewer than half of the
        texts are short, or if there are no two different ones.
    """
    short: Counter[str] = Counter()
    as_written: dict[str, str] = {}
    for text, count in texts.counts.items():
        short[normalised(text)] += count
        as_written.setdefault(normalised(text), text)
    if 2 * texts.short < texts.total:
        return _none(f"fewer than half of the compared texts are short (at most {SHORT} words)")
    frequent = short.most_common(MOST_TEXTS)
    pairs = sum(count for _, count in frequent) ** 2 - sum(count**2 for _, count in frequent)
    if not pairs:
        return _none("no two different short texts are compared by similarity")
    matrix = vectors([as_written[text] for text, _ in frequent])
    similar = 0
    for position, (_, count) in enumerate(frequent):
        close = matrix @ matrix[position] > THRESHOLD
        similar += count * sum(
            frequent[other][1] for other in close.nonzero()[0].tolist() if other != position
        )
    return MetricValue(CONFUSED, "all", 100 * similar / pairs, pairs // 2, clusters)


def similarity_warning(metrics: Iterable[MetricValue]) -> str | None:
    """The warning on the similarity metrics of a run, for every view of it.

    Returns:
        The warning; None if similarity tells the short answers of the run apart, or nothing is known.
    """
    for metric in metrics:
        if metric.metric == CONFUSED and metric.value is not None and metric.value > UNRELIABLE:
            return (
                f"con, s_c, s_gt and the metrics made of them are unreliable here: {metric.value:.1f} % of "
                f"the pairs of different short texts count as similar (limit {UNRELIABLE:g} %). Use agree, "
                "which compares the answers themselves"
            )
    return None


def _none(reason: str) -> MetricValue:
    return MetricValue(CONFUSED, "all", None, 0, 0, reason=reason)
