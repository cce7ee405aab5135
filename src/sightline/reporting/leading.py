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
        benchmark: The name of the benchmark.
        runs: The values of each run.
        label: The label whose values the view shows; None for all samples.

    Returns:
        The leading metrics of the benchmark among those with such values, or the first three; each with its
        companion (`Benchmark.companions`) where both differ in a run. Where similarity is unreliable in a
        run, `Benchmark.exact_metric` leads.
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
    unreliable = exact in names and any(similarity_warning(run) for run in runs)
    return [exact, *(name for name in shown if name != exact)] if unreliable else shown


def _differ(metrics: Iterable[MetricValue], name: str, other: str) -> bool:
    """Whether two metrics of a run have different values in any subset."""
    values = {(metric.metric, metric.subset): metric.value for metric in metrics}
    return any(
        values[name, subset] != values.get((other, subset)) for metric, subset in values if metric == name
    )
