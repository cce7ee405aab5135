"""The list of runs, and the page of a run: what was run, metrics and plots, verdicts, progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import get_args
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from sightline.benchmarks.registry import benchmark_class
from sightline.evaluation.runs import RunLine, read_stored_run, select_runs
from sightline.reporting.notes import run_notes, value_notes
from sightline.reporting.tables import warnings_of
from sightline.types import MetricValue, Result, VerdictName
from sightline.viewer.addresses import read_word
from sightline.viewer.groups_page import Card, cards
from sightline.viewer.index_types import Facets, RunSummary
from sightline.viewer.live_run import LiveView
from sightline.viewer.plots import NamedResult
from sightline.viewer.sections import result_table, section_views, stats
from sightline.viewer.viewer import READABLE, Viewer, run_name, waiting_page

FIRST_GROUPS = 6
"""The groups that the page of a run shows."""


class VerdictCount(Struct, frozen=True):
    """The groups in which any answer has a verdict."""

    verdict: VerdictName
    groups: int


def run_page(viewer: Viewer, request: Request) -> Response:
    run = request.path_params["run"]
    summary = viewer.index.summary(run)
    live = _live(viewer, summary)
    shown = summary.state if live else viewer.builds.state(summary)
    if live is None and shown.step not in READABLE:
        return waiting_page(viewer, request, summary) or run_page(viewer, request)
    counted = None
    if summary.result is not None and not (live and live.is_held):
        counted = _counted(viewer, summary, summary.result)
    return viewer.page(
        "run_page.html",
        {
            "section": "Runs",
            "run": summary.line,
            "state": shown,
            "groups": summary.groups,
            "result": summary.result,
            "live": live,
            "counted": counted,
        },
    )


def metrics_json(viewer: Viewer, request: Request) -> Response:
    run = request.path_params["run"]
    content = msgspec.json.format(viewer.index.open(run).result_json)
    return Response(
        content,
        media_type="application/json",
        headers={"content-disposition": f'attachment; filename="metrics-{run}.json"'},
    )


class _Counted(Struct, frozen=True):
    """What the page shows of the result; `warnings` change how the leading metrics are read."""

    warnings: Sequence[str]
    stats: Sequence[object]
    table: object
    sections: Sequence[object]
    verdicts: Sequence[VerdictCount]
    notes: Sequence[str]
    value_notes: Sequence[str]
    first: Sequence[Card]


def _counted(viewer: Viewer, summary: RunSummary, result: Result) -> _Counted:
    index = viewer.index.open(summary.run)
    named = NamedResult(run_name(summary.line), result, index.count)
    return _Counted(
        warnings=warnings_of(result),
        stats=stats(named),
        table=result_table([named]),
        sections=section_views([named]),
        verdicts=_verdicts(index.facets()),
        notes=run_notes(result),
        value_notes=value_notes(result.metrics),
        first=cards(index, index.page(limit=FIRST_GROUPS).rows),
    )


def _live(viewer: Viewer, summary: RunSummary) -> LiveView | None:
    stored = read_stored_run(viewer.store, summary.run)
    return None if stored.is_finished else viewer.live.view(stored, time.time())


def _verdicts(facets: Facets) -> list[VerdictCount]:
    counts = {
        value.value: value.count
        for facet in facets.facets
        if facet.name == "verdict"
        for value in facet.values
    }
    return [VerdictCount(name, counts[name]) for name in get_args(VerdictName) if name in counts]


# -- The page that lists the runs of the store


class RunRow(Struct, frozen=True):
    """A run in the list, with the first leading metric of its benchmark; None for a run without an index."""

    line: RunLine
    value: MetricValue | None


def runs_page(viewer: Viewer, request: Request) -> Response:
    """The runs in an order, the latest first by default; `task`, `search` and `tag` select."""
    query = request.query_params
    task, search, tag = query.get("task", ""), query.get("search", ""), query.get("tag", "")
    order = read_word("order", query.get("order") or "latest", ORDERS)
    summaries = viewer.index.runs()
    runs = [summary.line for summary in summaries]
    selected = {
        run.number for run in select_runs(runs, [tag] if tag else [], task, "") if _holds(run, search)
    }
    rows = [
        RunRow(summary.line, _first_value(summary))
        for summary in reversed(summaries)
        if summary.run in selected
    ]
    return viewer.page(
        "runs_page.html",
        {
            "rows": sorted(rows, key=ORDERS[order], reverse=True),
            "order": order,
            "address": lambda by: (
                "/runs?" + urlencode({"task": task, "search": search, "tag": tag, "order": by})
            ),
            "total": len(runs),
            "tasks": sorted({run.task for run in runs}),
            "tags": sorted({tag for run in runs for tag in run.tags}),
            "task": task,
            "search": search,
            "tag": tag,
        },
    )


def _value_of(row: RunRow) -> float:
    return -math.inf if row.value is None or row.value.value is None else row.value.value


ORDERS: Mapping[str, Callable[[RunRow], float]] = {
    "latest": lambda row: row.line.number,
    "result": _value_of,
    "time": lambda row: row.line.seconds or 0.0,
    "tokens": lambda row: row.line.tokens,
    "cost": lambda row: row.line.cost,
    "p95": lambda row: row.line.p95 or 0.0,
}
"""Order of the list -> the number of a run, the largest first."""


def _holds(run: RunLine, search: str) -> bool:
    """Whether the name, the model, a tag or the note of a run holds the text."""
    texts = (run.name or "", run.model, *run.tags, run.note)
    return any(search.casefold() in text.casefold() for text in texts)


def _first_value(summary: RunSummary) -> MetricValue | None:
    if summary.result is None:
        return None
    values = {one.metric: one for one in summary.result.metrics if one.subset == "all"}
    declared = benchmark_class(summary.result.benchmark).leading_metrics
    return next((values[name] for name in (*declared, *values) if name in values), None)
