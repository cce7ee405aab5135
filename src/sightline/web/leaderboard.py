"""The page of the leaderboard."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sightline.web.addresses import with_query
from sightline.web.leaderboard_table import Choice, build_leaderboard
from sightline.web.viewer import Viewer


def leaderboard(viewer: Viewer, request: Request) -> Response:
    """Models by benchmark: the primary metric of each."""
    query = request.query_params
    settings = dict(pair.split(":", 1) for pair in query.getlist("setting") if ":" in pair)
    choice = Choice(
        settings=settings,
        model=query.get("model", ""),
        judge=query.get("judge", ""),
        sort=query.get("sort", ""),
        published=query.get("published") != "off",
        human=query.get("human") != "off",
    )
    runs = viewer.index.runs()
    table = build_leaderboard(runs, choice)
    return viewer.page(
        "leaderboard_page.html",
        {
            "section": "Leaderboard",
            "table": table,
            "choice": choice,
            "waiting": viewer.builds.start_missing(runs),
            "store_path": viewer.store.name,
            "link": lambda **changed: with_query(request, **changed),
        },
    )
