"""The application: which address shows which page, and the pages of errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sightline.annotation.live import NotYourItemError
from sightline.annotation.store import ProjectClosedError
from sightline.errors import EnvironmentFailedError, NoSuchRecordError, UserError
from sightline.evaluation.run_images import ImageError
from sightline.store.store import Store
from sightline.viewer import annotator_pages as annotator
from sightline.viewer import owner_pages as owner
from sightline.viewer.access import ROOT
from sightline.viewer.addresses import NotFoundError
from sightline.viewer.annotation_items import FormPage
from sightline.viewer.annotation_items import endpoint as form_endpoint
from sightline.viewer.compare_page import compare_page
from sightline.viewer.data_page import data_page, data_thumbnail, folder_page, search_duplicates
from sightline.viewer.data_set import DuplicateSearches
from sightline.viewer.environment import FOLDER
from sightline.viewer.groups_page import export_answers, group_page, groups_page
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.judges_page import judges_page
from sightline.viewer.leaderboard import leaderboard, leaderboard_csv, leaderboard_latex
from sightline.viewer.live_run import LiveRuns
from sightline.viewer.projects import Projects
from sightline.viewer.run_page import metrics_json, run_page, runs_page
from sightline.viewer.viewer import (
    Builds,
    Page,
    StaticFiles,
    Viewer,
    build_again,
    chart,
    image,
    templates,
    thumbnail,
)

STATIC = Path(__file__).parent / "static"
MAX_FORM_BYTES = 1_000_000

_PROJECT = f"{ROOT}/{{project:int}}"

PAGES: dict[str, Page] = {
    "/": leaderboard,
    "/leaderboard.csv": leaderboard_csv,
    "/leaderboard.tex": leaderboard_latex,
    "/runs": runs_page,
    "/runs/{run:int}": run_page,
    "/runs/{run:int}/metrics.json": metrics_json,
    "/runs/{run:int}/groups": groups_page,
    "/runs/{run:int}/group": group_page,
    "/runs/{run:int}/answers.jsonl": export_answers,
    "/runs/{run:int}/thumbnails/{digest}": thumbnail,
    "/runs/{run:int}/images/{digest}": image,
    "/charts/{name}": chart,
    "/compare": compare_page,
    "/judges": judges_page,
    "/data": data_page,
    "/data/{place:int}": folder_page,
    "/data/{place:int}/images/{number:int}/{nth:int}": data_thumbnail,
    f"{_PROJECT}/": annotator.start,
    f"{_PROJECT}/consent": annotator.consent_page,
    f"{_PROJECT}/guidelines": annotator.guidelines_page,
    f"{_PROJECT}/item": annotator.item_page,
    f"{_PROJECT}/items/{{number:int}}": annotator.own_item_page,
    f"{_PROJECT}/items/{{number:int}}/feedback": annotator.feedback_page,
    f"{_PROJECT}/items/{{number:int}}/images/{{name}}": annotator.image,
    "/projects": owner.projects_page,
    "/projects/{project:int}": owner.project_page,
    "/projects/{project:int}/answers": owner.answers_page,
    "/projects/{project:int}/corrected": owner.corrected_page,
    "/projects/{project:int}/items": owner.items_page,
    "/projects/{project:int}/items/{number:int}": owner.owner_item_page,
    "/projects/{project:int}/items/{number:int}/images/{name}": owner.owner_image,
    "/projects/{project:int}/export.zip": owner.export,
}
"""Path -> page."""

FORMS: dict[str, Page] = {
    "/runs/{run:int}/index": build_again,
    "/data/{place:int}/duplicates": search_duplicates,
}
"""Path -> what a form does."""

ANNOTATION_FORMS: dict[str, FormPage] = {
    f"{_PROJECT}/consent": annotator.consent,
    f"{_PROJECT}/items/{{number:int}}": annotator.act,
    "/projects": owner.new_project,
    "/projects/{project:int}/items/{number:int}": owner.settle,
    "/projects/{project:int}/answers": owner.compare_answer,
    "/projects/{project:int}/annotators": owner.invite_annotator,
    "/projects/{project:int}/annotators/{annotator:int}": owner.change_annotator,
    "/projects/{project:int}/guidelines": owner.change_guidelines,
    "/projects/{project:int}/state": owner.close,
}
"""Path -> what a form about a project does."""


def create_app(
    store: Store,
    data: Sequence[Path] = (),
    projects: Projects | None = None,
    *,
    is_lasting: bool = True,
) -> Starlette:
    """Make the application; `AccessControl` goes around it. None for `projects` leaves annotators out."""
    static = StaticFiles((FOLDER / "sightline.css", *STATIC.iterdir()))
    index = OutcomeIndex(store, data)
    viewer = Viewer(
        store,
        data,
        index,
        Builds(index),
        LiveRuns(store),
        DuplicateSearches(store),
        projects or Projects(store, time.time, data),
        templates(),
        static,
        is_lasting,
    )
    routes = [
        *(Route(path, _bound(viewer, page)) for path, page in PAGES.items()),
        *(Route(path, _bound(viewer, form), methods=["POST"]) for path, form in FORMS.items()),
        *(
            Route(path, form_endpoint(viewer, form), methods=["POST"])
            for path, form in ANNOTATION_FORMS.items()
        ),
    ]
    return Starlette(
        routes=[*routes, Route("/static/{name}", static.respond), Route("/favicon.ico", static.icon)],
        exception_handlers={
            error: _error_page(viewer, status, title) for error, (status, title) in ERRORS.items()
        },
        max_body_size=MAX_FORM_BYTES,
    )


ERRORS: dict[type[Exception], tuple[int, str]] = {
    NotFoundError: (404, "Not found"),
    NotYourItemError: (403, "This is not yours"),
    ProjectClosedError: (409, "The project is closed"),
    ImageError: (404, "This image cannot be shown"),
    NoSuchRecordError: (404, "Not found"),
    UserError: (400, "This cannot be shown"),
    EnvironmentFailedError: (503, "The store failed"),
    HTTPException: (404, "Not found"),
}
"""Error -> HTTP status and title of its page."""


def _bound(viewer: Viewer, page: Page) -> Callable[[Request], Response]:
    """The page as a synchronous endpoint, which Starlette calls in a thread."""

    def endpoint(request: Request) -> Response:
        viewer.store.database.check_connection()
        return page(viewer, request)

    return endpoint


def _error_page(viewer: Viewer, status: int, title: str) -> Callable[[Request, Exception], Response]:
    def respond(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            text, code = error.detail, error.status_code
        else:
            text, code = str(error), status
        if request.url.path.startswith(f"{ROOT}/"):
            return _annotator_error(viewer, request, error, title, text, code)
        return viewer.page("error_page.html", {"title": title, "text": text}, code)

    return respond


def _annotator_error(
    viewer: Viewer, request: Request, error: Exception, title: str, text: str, code: int
) -> Response:
    """The page of an error for an annotator: nothing about files or the store."""
    if isinstance(error, ProjectClosedError):
        text = f"{annotator.CLOSED} {annotator.KEPT} Thank you."
    elif isinstance(error, EnvironmentFailedError):
        text = f"{annotator.FAILED} {annotator.KEPT} Try again in a minute."
    place = "/".join(request.url.path.split("/")[:3]) + "/"
    return viewer.page("task_error_page.html", {"title": title, "text": text, "place": place}, code)
