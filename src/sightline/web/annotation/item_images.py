"""The images of items, under names that hold neither path nor digest."""

from __future__ import annotations

import hmac
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from sightline.annotation.links import image_name
from sightline.annotation.live import LiveProject
from sightline.outcome_index.images import ImageError, RunImages
from sightline.web.errors import NotFoundError
from sightline.web.images import KEPT
from sightline.web.viewer import Viewer

MISSING = "This image cannot be shown. If you need it, report the item as broken."
"""Nothing about the file: its path could name a model."""


def item_image(viewer: Viewer, live: LiveProject, request: Request) -> Response:
    """Answer a request for an image of an item: `number` and `name` are in its path."""
    item = live.state.items.get(request.path_params["number"])
    name = request.path_params["name"]
    row = live.row
    for image in (image for images in (item.images.values() if item else ()) for image in images):
        if name.isascii() and hmac.compare_digest(
            name, image_name(row, request.path_params["number"], image.digest)
        ):
            folders = [*([Path(row.project.data)] if row.project.data else []), *viewer.data]
            try:
                found = RunImages(viewer.store, folders).content(image.path, image.digest)
            except ImageError:
                raise NotFoundError(MISSING) from None
            return Response(found.body, media_type=found.media_type, headers={"cache-control": KEPT})
    raise NotFoundError(MISSING)
