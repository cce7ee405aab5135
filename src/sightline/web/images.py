"""Images of runs: their addresses, and why one is not shown.

An address holds the digest of an image, never a path: only images that a run sent are read, in its data
folders, and only while they have that digest.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from sightline.outcome_index.images import NOT_SENT, ImageError
from sightline.outcome_index.types import GroupRow, IndexedImage
from sightline.reporting.html.group_view import ImageSource, ShownImage
from sightline.web.viewer import Viewer

KEPT = "private, max-age=31536000, immutable"
"""What browsers do with an image: its address names one content."""


def card_image(run: int) -> Callable[[GroupRow], str]:
    """The addresses of the thumbnails of the groups of a run; '' for a group without an image to show."""

    def address(row: GroupRow) -> str:
        return f"/runs/{run}/thumbnails/{row.image.digest}" if row.image and row.image.digest else ""

    return address


def shown_images(viewer: Viewer, run: int, *, small: bool = False) -> ImageSource:
    """How the images of a run are shown: the file that was sent, or why there is none."""
    images = viewer.index.images(run)
    kind = "thumbnails" if small else "images"

    def shown(image: IndexedImage) -> ShownImage:
        try:
            file = images.find(image.path, image.digest)
        except ImageError as error:
            return ShownImage(image.path, notice=str(error))
        if not image.digest:
            return ShownImage(image.path, notice=f"{image.path}: the run does not record which image it sent")
        facts = "" if small else f"{file.width} × {file.height} {file.format} · sha256 {file.digest[:8]}…"
        if not image.is_sent:
            facts = " · ".join(filter(None, (facts, NOT_SENT)))
        return ShownImage(image.path, f"/runs/{run}/{kind}/{image.digest}", file.width, file.height, facts)

    return shown


def image(viewer: Viewer, request: Request) -> Response:
    """An image as it was sent."""
    run, digest = request.path_params["run"], request.path_params["digest"]
    found = viewer.index.images(run).content(viewer.index.open(run).images.path(digest), digest)
    return Response(found.body, media_type=found.media_type, headers={"cache-control": KEPT})


def thumbnail(viewer: Viewer, request: Request) -> Response:
    """An image, small."""
    run, digest = request.path_params["run"], request.path_params["digest"]
    body = viewer.index.images(run).thumbnail(viewer.index.open(run).images.path(digest), digest)
    return Response(body, media_type="image/webp", headers={"cache-control": KEPT})
