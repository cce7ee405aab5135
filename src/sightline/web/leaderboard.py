"""The page of the leaderboard, and its table as CSV and LaTeX."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sightline.reporting.latex_table import latex
from sightline.reporting.table_text import csv_text
from sightline.web.addresses import with_query
from sightline.web.leaderboard_table import build_leaderboard
from sightline.web.leaderboard_text import csv_table, paper_table, remarks
from sightline.web.leaderboard_types import Choice
from sightline.web.viewer import Viewer


def leaderboard(viewer: Viewer, request: Request) -> Response:
    """Models by benchmark: the primary metric of each."""
    choice = _choice(request)
    runs = viewer.index.runs()
    table = build_leaderboard(runs, choice)
    return viewer.page(
        "leaderboard_page.html",
        {
            "section": "Leaderboard",
            "table": table,
            "remarks": remarks(table),
            "choice": choice,
            "query": request.url.query,
            "waiting": viewer.builds.start_missing(runs),
            "store_path": viewer.store.name,
            "link": lambda **changed: with_query(request, **changed),
        },
    )


def leaderboard_csv(viewer: Viewer, request: Request) -> Response:
    """The leaderboard as CSV, with the rows and settings that the reader chose."""
    board = build_leaderboard(viewer.index.runs(), _choice(request))
    return _file(csv_text(csv_table(board)), "text/csv", "leaderboard.csv")


def leaderboard_latex(viewer: Viewer, request: Request) -> Response:
    """The leaderboard as a table of a paper."""
    board = build_leaderboard(viewer.index.runs(), _choice(request))
    return _file(latex([paper_table(board)]), "text/x-tex", "leaderboard.tex")


def _choice(request: Request) -> Choice:
    query = request.query_params
    return Choice(
        settings=dict(pair.split(":", 1) for pair in query.getlist("setting") if ":" in pair),
        model=query.get("model", ""),
        judge=query.get("judge", ""),
        sort=query.get("sort", ""),
        published=query.get("published") != "off",
        human=query.get("human") != "off",
    )


def _file(text: str, media_type: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=media_type, headers=headers)
