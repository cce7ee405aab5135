"""Metrics of MM-R3's context task: the share of answers that name the mask and not what it hides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sightline.metric_types import PERCENT, Metric, Term
from sightline.scoring.flags import flag
from sightline.types import Group


def mask_terms(label: str) -> Callable[[Group], Iterable[Term]]:
    """Count the answers that name a property of their mask (MM-R3 4.3.1)."""

    def terms(group: Group) -> Iterator[Term]:
        for outcome in group:
            named = flag(outcome.scores, f"names_{label}")
            if isinstance(outcome.labels.get(label), str) and outcome.answered and named is not None:
                yield Term(named, 1, outcome.labels)

    return terms


MASK_METRICS = tuple(
    Metric(
        name=f"names_{label}",
        terms=mask_terms(label),
        meaning=f"answers that name the {label} of the mask",
        better="lower",
        range=PERCENT,
        source="MM-R3 4.3.1 and A.9.3",
        judged=None,
        absent=f"no label '{label}'",
    )
    for label in ("colour", "shape", "lines")
)
