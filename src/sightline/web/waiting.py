"""The pages that wait: for the index of a run, or for a comparison."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sightline.outcome_index.types import IndexState, RunSummary
from sightline.web.builds import READABLE
from sightline.web.run_title import run_name
from sightline.web.viewer import Page, Viewer

RunPage = Callable[[Viewer, Request, RunSummary], Response]
"""A page of a run that reads its index."""


def with_index(page: RunPage) -> Page:
    """Make a page of a run wait for the index of the run that its address names."""

    def shown(viewer: Viewer, request: Request) -> Response:
        summary = viewer.index.summary(request.path_params["run"])
        return waiting_page(viewer, request, summary) or page(viewer, request, summary)

    return shown


def waiting_page(viewer: Viewer, request: Request, summary: RunSummary) -> Response | None:
    """The page that is shown until the index of a run can be read.

    Returns:
        The page; None if the index can be read.
    """
    state = viewer.builds.state(summary)
    if state.step in READABLE:
        return None
    title = f"{run_name(summary.line)} on {summary.line.task}"
    return progress_page(viewer, request, title, state, again=f"/runs/{summary.run}/index")


def progress_page(
    viewer: Viewer, request: Request, title: str, state: IndexState, again: str = ""
) -> Response:
    """The page of something that is being built, or could not be built."""
    query = f"?{request.url.query}" if request.url.query else ""
    context = {"title": title, "state": state, "address": request.url.path + query, "again": again}
    return viewer.page("waiting_page.html", context)


def build_again(viewer: Viewer, request: Request) -> Response:
    """Build the index of a run again; its page follows."""
    run = viewer.index.summary(request.path_params["run"]).run
    viewer.builds.start(run)
    return RedirectResponse(f"/runs/{run}", status_code=303)
