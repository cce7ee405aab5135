"""The application: which address shows which page, and the pages of errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError, UserError
from sightline.report.html.environment import FOLDER
from sightline.web.errors import NotFoundError
from sightline.web.runs_page import runs_page
from sightline.web.static_files import StaticFiles
from sightline.web.viewer import Page, Viewer, templates

STATIC = Path(__file__).parent / "static"
MAX_FORM_BYTES = 100_000

PAGES: dict[str, Page] = {
    "/": runs_page,
    "/runs": runs_page,
}
"""Path -> page."""


def create_app(store: Store) -> Starlette:
    """Make the application. `AccessControl` goes around it.

    Args:
        store: The store whose runs are shown.

    Returns:
        The application.
    """
    static = StaticFiles((FOLDER / "sightline.css", *STATIC.iterdir()))
    viewer = Viewer(store, templates(), static)
    routes = [Route(path, _bound(viewer, page)) for path, page in PAGES.items()]
    return Starlette(
        routes=[*routes, Route("/static/{name}", static.respond)],
        exception_handlers={
            error: _error_page(viewer, status, title) for error, (status, title) in ERRORS.items()
        },
        max_body_size=MAX_FORM_BYTES,
    )


ERRORS: dict[type[Exception], tuple[int, str]] = {
    NotFoundError: (404, "Not found"),
    UserError: (400, "This cannot be shown"),
    EnvironmentFailedError: (503, "The store failed"),
    HTTPException: (404, "Not found"),
}
"""Error -> HTTP status and title of its page."""


def _bound(viewer: Viewer, page: Page) -> Callable[[Request], Response]:
    """The page as a synchronous endpoint, which Starlette calls in a thread."""

    def endpoint(request: Request) -> Response:
        return page(viewer, request)

    return endpoint


def _error_page(viewer: Viewer, status: int, title: str) -> Callable[[Request, Exception], Response]:
    def respond(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            text, code = error.detail, error.status_code
        else:
            text, code = str(error), status
        return viewer.page("error.html", {"title": title, "text": text}, code)

    return respond
