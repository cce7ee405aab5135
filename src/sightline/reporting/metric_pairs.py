"""Two metrics of each run and of each published row, for scatter plots."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sightline.reporting.tables import run_names
from sightline.types import MetricValue, PublishedValue, Result, Spent


class MetricPair(Struct, frozen=True):
    """Two metrics of a run, or two published `figures` of a row; `name` is that of the run or the row."""

    name: str
    x: MetricValue
    y: MetricValue
    figures: tuple[PublishedValue, ...] = ()


def metric_pairs(
    results: Sequence[Result], names: tuple[str, str], runs: Sequence[str] = ()
) -> list[MetricPair]:
    """Two metrics over all samples of each run that has both, then of each published row."""
    found: list[MetricPair] = []
    printed: dict[str, MetricPair] = {}
    for run, result in zip(run_names(results, runs), results, strict=True):
        over_all = spent_metrics(result)
        over_all |= {metric.metric: metric for metric in result.metrics if metric.subset == "all"}
        x, y = over_all.get(names[0]), over_all.get(names[1])
        if x is None or y is None or x.value is None or y.value is None:
            continue
        found.append(MetricPair(run, x, y))
        others = {(one.row, one.table): one for one in y.published or ()}
        for figure in x.published or ():
            if other := others.get((figure.row, figure.table)):
                # The mark that says more: not comparable before a note.
                mark = min(filter(None, (figure.mark, other.mark)), default="")
                name = f"{figure.row}, {figure.table} {mark}".rstrip()
                first, second = (
                    replace(m, value=v.value, low=None, high=None, n=0) for m, v in ((x, figure), (y, other))
                )
                printed.setdefault(name, MetricPair(name, first, second, (figure, other)))
    return [*found, *printed.values()]


def spent_metrics(result: Result) -> dict[str, MetricValue]:
    """What 1,000 answers of a run cost, and the 95 % quantile of its latency (s), as axes of a plot."""
    spent = result.spent or Spent(0)
    found = {
        "cost": None if spent.cost is None else 1000 * spent.cost / max(spent.answers, 1),
        "p95": spent.p95,
    }
    return {
        name: MetricValue(name, "all", value, spent.answers, 0, unit="number")
        for name, value in found.items()
        if value is not None
    }
