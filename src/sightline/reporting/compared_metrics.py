"""The metrics that a comparison shows: those that the user names, or the leading ones."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.errors import UserError
from sightline.reporting.leading import leading_metrics
from sightline.results.comparison import Comparison


def compared_metrics(names: Sequence[str], comparison: Comparison, by: str | None) -> Sequence[str]:
    """Choose the metrics of a comparison.

    Args:
        names: The metrics that the user names; none for the leading ones.
        by: The label whose values are rows too, or None.
    """
    known = list(dict.fromkeys(metric.metric for metric in comparison.differences))
    for name in names:
        if name in comparison.not_compared:
            raise UserError(f"--metric {name} cannot be compared: it {comparison.not_compared[name]}")
        if name not in known:
            raise UserError(f"--metric {name}: the runs have no such metric", expected=", ".join(known))
    runs = [
        [*values, *side.confused]
        for values, side in zip((comparison.base, comparison.other), comparison.sides, strict=True)
    ]
    shown = [
        name
        for label in dict.fromkeys((None, by))
        for name in leading_metrics(comparison.benchmark, runs, label)
    ]
    return names or list(dict.fromkeys(shown))
