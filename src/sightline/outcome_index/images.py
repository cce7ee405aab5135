"""The images of runs: found in their data folders, checked against the digest that was sent; thumbnails."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sightline.engine import index_tables
from sightline.engine.caches import CacheTable
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.images import MEDIA_TYPES, BadImage, inspect_image, read_bytes, read_image
from sightline.types import ImageFile, ImageRef

SIDE = 320
"""The longest side of a thumbnail in pixels."""

QUALITY = 80
SHOWN_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "AVIF")
"""The formats that every browser shows; images in others are shown as PNG."""


NOT_SENT = "from the data folder; it is not recorded which image was sent"
"""What displays say of an image that no request holds."""


class ImageContent(NamedTuple):
    """An image for a browser."""

    media_type: str
    body: bytes


class ImageError(UserError):
    """An image cannot be shown: it is missing, has changed, or is outside the data folder."""


class RunImages(NamedTuple):
    """The images of a run."""

    store: Store
    folders: Sequence[Path]

    def content(self, path: str, digest: str) -> ImageContent:
        file = self.find(path, digest)
        try:
            if file.format not in SHOWN_FORMATS:
                out = io.BytesIO()
                read_image(file).save(out, "PNG")
                return ImageContent(MEDIA_TYPES["PNG"], out.getvalue())
            return ImageContent(*read_bytes(file))
        except BadImage as error:
            raise ImageError(str(error)) from None

    def thumbnail(self, path: str, digest: str) -> bytes:
        """Read a small version of an image; it is made once.

        Returns:
            A WebP image, at most SIDE pixels wide and high.
        """
        table = CacheTable(self.store.database, index_tables.thumbnails.name)
        key = bytes.fromhex(digest or self.find(path, digest).digest)
        body = table.look_up([key]).get(key)
        if body is None:
            body = _shrunk(self.find(path, digest))
            table.add({key: body})
        return body

    def find(self, path: str, digest: str) -> ImageFile:
        """Find an image in the data folders."""
        problems = []
        for found in self._candidates(path):
            if isinstance(found, ImageError):
                problems.append(found)
            elif digest in ("", found.digest):
                return found
            else:
                problems.append(
                    ImageError(
                        "this is not the image that was sent: the file has changed",
                        file=found.path,
                        field="sha256",
                        found=found.digest,
                        expected=f"{digest}, in this folder or in another one (--data DIR)",
                    )
                )
        if problems:
            raise problems[0]
        raise ImageError("it is not recorded where the image is", file=path, expected="--data DIR")

    def _candidates(self, path: str) -> Iterator[ImageFile | ImageError]:
        for folder in self.folders:
            image = ImageRef(os.path.join(folder, path), str(folder))
            try:
                yield inspect_image(image, {})
            except BadImage as error:
                yield ImageError(str(error), expected="the data folder of the run (--data DIR)")


def _shrunk(file: ImageFile) -> bytes:
    try:
        image = read_image(file)
    except BadImage as error:
        raise ImageError(str(error)) from None
    image.thumbnail((SIDE, SIDE))
    out = io.BytesIO()
    image.save(out, "WEBP", quality=QUALITY)
    return out.getvalue()
