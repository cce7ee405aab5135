"""Stamps of image files: whether an image changed since a plan was made, without reading it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence

import msgspec

from sightline.engine.compression import Compressor
from sightline.evaluation.prepared import ImageStamps
from sightline.images import FoundImage

IMAGES_TOGETHER = 4096
"""Images whose paths are compressed together."""

_compressor = Compressor()


class StampRecorder:
    """Collects the stamps of images before a plan reads them: a later change then has another stamp."""

    def __init__(self) -> None:
        self._parts: list[ImageStamps] = []
        self._paths: list[str] = []
        self._stamps = hashlib.sha256()

    def add(self, images: Iterable[FoundImage]) -> None:
        """Add images.

        Args:
            images: The files of the images.
        """
        for image in images:
            self._paths.append(image.name)
            self._stamps.update(_stamp(image.info))
        if len(self._paths) >= IMAGES_TOGETHER:
            self._close_part()

    def parts(self) -> list[ImageStamps]:
        """The stamps of all images.

        Returns:
            The images in parts.
        """
        if self._paths:
            self._close_part()
        return self._parts

    def _close_part(self) -> None:
        paths = _compressor.compress(msgspec.msgpack.encode(self._paths))
        self._parts.append(ImageStamps(paths, self._stamps.digest()))
        self._paths, self._stamps = [], hashlib.sha256()


def are_unchanged(parts: Sequence[ImageStamps]) -> bool:
    """Compare images with their stamps.

    Args:
        parts: What a recorder collected.

    Returns:
        Whether each image is the same file with the same size and times.

    Raises:
        DamagedBodyError: A part is damaged.
    """
    for part in parts:
        stamps = hashlib.sha256()
        for path in msgspec.msgpack.decode(_compressor.decompress(part.paths), type=list[str]):
            try:
                stamps.update(_stamp(os.stat(path)))
            except (OSError, ValueError):
                return False
        if stamps.digest() != part.stamps:
            return False
    return True


def _stamp(info: os.stat_result) -> bytes:
    """Number, size and last changes of a file."""
    return b"%d %d %d %d;" % (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
