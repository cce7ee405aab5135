"""The metrics that compact views of results show, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sightline.metric_types import MetricValue
from sightline.metrics.confusion import similarity_warning
from sightline.registry import benchmark_class
from sightline.reporting.notes import label_of


def leading_metrics(
    benchmark: str, runs: Sequence[Sequence[MetricValue]], label: str | None = None
) -> list[str]:
    """The metrics that compact views of runs of one benchmark show.

    Args:
        label: The label whose values the view shows; None for all samples.
    """
    declared = benchmark_class(benchmark)
    shown_values = [[m for m in run if label_of(m)[0] == (label or "")] for run in runs]
    names = list(dict.fromkeys(metric.metric for run in shown_values for metric in run))
    shown: list[str] = []
    for name in [name for name in declared.leading_metrics if name in names] or names[:3]:
        companion = declared.companions.get(name, "")
        differs = companion in names and any(_differ(run, name, companion) for run in shown_values)
        shown += [name, companion] if differs else [name]
    exact = declared.exact_metric
    if exact not in names or not any(similarity_warning(run) for run in runs):
        return shown
    others = [name for name in shown if name != exact]
    has_headline = any(m.metric in others[:1] and m.value is not None for run in shown_values for m in run)
    return [*others[:1], exact, *others[1:]] if has_headline else [exact, *others]


def _differ(metrics: Iterable[MetricValue], name: str, other: str) -> bool:
    """Whether two metrics of a run have different values in any subset."""
    values = {(metric.metric, metric.subset): metric.value for metric in metrics}
    return any(
        values[name, subset] != values.get((other, subset)) for metric, subset in values if metric == name
    )
