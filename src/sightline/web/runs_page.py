"""The page that lists the runs of the store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from sightline.metric_types import MetricValue
from sightline.outcome_index.types import RunSummary
from sightline.registry import benchmark_class
from sightline.results.run_list import RunLine, select_runs
from sightline.web.viewer import Viewer


class RunRow(Struct, frozen=True):
    """A run in the list, with the first leading metric of its benchmark; None for a run without an index."""

    line: RunLine
    value: MetricValue | None


def runs_page(viewer: Viewer, request: Request) -> Response:
    """The runs, the latest first; `task`, `model` and `tag` select."""
    query = request.query_params
    task, model, tag = query.get("task", ""), query.get("model", ""), query.get("tag", "")
    summaries = viewer.index.runs()
    runs = [summary.line for summary in summaries]
    selected = {run.number for run in select_runs(runs, [tag] if tag else [], task, model)}
    return viewer.page(
        "runs_page.html",
        {
            "rows": _rows([summary for summary in reversed(summaries) if summary.run in selected]),
            "total": len(runs),
            "tasks": sorted({run.task for run in runs}),
            "tags": sorted({tag for run in runs for tag in run.tags}),
            "task": task,
            "model": model,
            "tag": tag,
        },
    )


def _rows(summaries: Sequence[RunSummary]) -> list[RunRow]:
    return [RunRow(summary.line, _first_value(summary)) for summary in summaries]


def _first_value(summary: RunSummary) -> MetricValue | None:
    if summary.result is None:
        return None
    values = {one.metric: one for one in summary.result.metrics if one.subset == "all"}
    declared = benchmark_class(summary.result.benchmark).leading_metrics
    return next((values[name] for name in (*declared, *values) if name in values), None)
