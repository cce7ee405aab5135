"""The pages of data: folders and groups files before anything is run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sightline.errors import UserError
from sightline.evaluation.run_images import RunImages
from sightline.viewer.addresses import NotFoundError, number_of
from sightline.viewer.data_set import read_data_set
from sightline.viewer.index_types import LABEL
from sightline.viewer.viewer import Viewer

PAGE = 48
MOST_PAIRS = 100
MOST_IMAGES = 4
"""The images of a group that its card shows."""


def data_page(viewer: Viewer, request: Request) -> Response:
    sets: list[tuple[int, Path, str, int, int, Sequence[str]]] = []
    for place, path in enumerate(viewer.data):
        try:
            data = read_data_set(path)
            sets.append((place, path, data.kind, len(data.items), data.probes, ()))
        except UserError as error:
            sets.append((place, path, "", 0, 0, str(error).splitlines()))
    return viewer.page("data_page.html", {"section": "Data", "sets": sets})


def folder_page(viewer: Viewer, request: Request) -> Response:
    place, path = _named(viewer, request)
    data = read_data_set(path)
    parameters = request.query_params.multi_items()
    labels = [
        (name.removeprefix(LABEL), value) for name, value in parameters if name.startswith(LABEL) and value
    ]
    search = request.query_params.get("search", "")
    selected = data.selected(labels, search)
    begin = number_of(request, "after") or 0
    return viewer.page(
        "folder_page.html",
        {
            "section": "Data",
            "place": place,
            "path": path,
            "data": data,
            "labels": labels,
            "search": search,
            "selected": selected,
            "after": begin or None,
            "shown": [(number, data.items[number]) for number in selected[begin : begin + PAGE]],
            "previous": begin - PAGE if begin > PAGE else None,
            "following": begin + PAGE if begin + PAGE < len(selected) else None,
            "query": urlencode(_query(labels, search)),
            "toggled": lambda name, value: _toggled(place, labels, search, name, value),
            "duplicates": viewer.duplicates.state(path),
            "pairs": MOST_PAIRS,
            "images": MOST_IMAGES,
        },
    )


def search_duplicates(viewer: Viewer, request: Request) -> Response:
    """Search for near-duplicates; the page of the data set shows the progress."""
    place, path = _named(viewer, request)
    viewer.duplicates.start(path, read_data_set(path))
    return RedirectResponse(f"/data/{place}#duplicates", status_code=303)


def data_thumbnail(viewer: Viewer, request: Request) -> Response:
    _, path = _named(viewer, request)
    items = read_data_set(path).items
    number, nth = request.path_params["number"], request.path_params["nth"]
    if number >= len(items) or nth >= len(items[number].images):
        raise NotFoundError("There is no such image.")
    image = items[number].images[nth]
    root = image.root or os.path.dirname(image.path)
    body = RunImages(viewer.store, [Path(root)]).thumbnail(os.path.relpath(image.path, root), "")
    return Response(body, media_type="image/webp")


def _named(viewer: Viewer, request: Request) -> tuple[int, Path]:
    place: int = request.path_params["place"]
    if place >= len(viewer.data):
        raise NotFoundError("There is no such data: it is named with sightline serve --data PATH.")
    return place, viewer.data[place]


def _query(labels: list[tuple[str, str]], search: str) -> list[tuple[str, str]]:
    return [*((LABEL + name, value) for name, value in labels), *([("search", search)] if search else [])]


def _toggled(place: int, labels: list[tuple[str, str]], search: str, name: str, value: str) -> str:
    others = [pair for pair in labels if pair[0] != name]
    chosen = others if (name, value) in labels else [*others, (name, value)]
    query = urlencode(_query(chosen, search))
    return f"/data/{place}" + (f"?{query}" if query else "")
