"""The page that lists the runs of the store."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sightline.results.run_list import list_runs, select_runs
from sightline.web.viewer import Viewer


def runs_page(viewer: Viewer, request: Request) -> Response:
    """The runs, the latest first; `task`, `model` and `tag` select."""
    query = request.query_params
    task, model, tag = query.get("task", ""), query.get("model", ""), query.get("tag", "")
    runs = list_runs(viewer.store)
    selected = select_runs(runs, [tag] if tag else [], task, model)
    return viewer.page(
        "runs_page.html",
        {
            "runs": selected[::-1],
            "total": len(runs),
            "tasks": sorted({run.task for run in runs}),
            "tags": sorted({tag for run in runs for tag in run.tags}),
            "task": task,
            "model": model,
            "tag": tag,
        },
    )
