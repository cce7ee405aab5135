"""Images inside a page: thumbnails as data URLs, or the reason why an image is not shown."""

from __future__ import annotations

import base64
import io
from functools import cache

from msgspec.structs import replace

from sightline.outcome_index.images import NOT_SENT, SIDE, ImageError, RunImages
from sightline.outcome_index.types import IndexedImage
from sightline.reporting.html.group_view import ImageSource, ShownImage

QUALITY = 60
"""The quality of images that are smaller than a thumbnail."""


def thumbnails(images: RunImages, side: int = SIDE) -> ImageSource:
    """Show images as parts of the page itself.

    Args:
        side: The longest side in pixels.
    """

    @cache
    def shown(image: IndexedImage) -> ShownImage:
        try:
            body = images.thumbnail(image.path, image.digest)
        except ImageError as error:
            return ShownImage(image.path, notice=f"{image.path}: not shown, {error.message}")
        inline = _inline(image.path, body, side)
        return inline if image.is_sent else replace(inline, notice=NOT_SENT)

    return shown


def _inline(name: str, body: bytes, side: int) -> ShownImage:
    """A WebP image as a data URL, made smaller if a side is longer."""
    from PIL import Image

    image = Image.open(io.BytesIO(body))
    if max(image.size) > side:
        image.thumbnail((side, side))
        out = io.BytesIO()
        image.save(out, "WEBP", quality=QUALITY)
        body = out.getvalue()
    source = f"data:image/webp;base64,{base64.b64encode(body).decode()}"
    return ShownImage(name, source, *image.size)
