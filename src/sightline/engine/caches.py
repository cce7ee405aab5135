"""Caches in the store that may be dropped: image metadata, text vectors, OCR results."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from sightline.engine import schema
from sightline.engine.database import Database
from sightline.types import ImageFile

_ROW = msgspec.msgpack.Decoder(tuple[bytes, str, int, int, int, int, str])
"""An image: digest, format, width, height, size in bytes, modification time in ns, transform."""


class Caches:
    """What Sightline computes again where it is missing. Use it as `store.caches`."""

    def __init__(self, database: Database) -> None:
        """Prepare it; nothing is read yet.

        Args:
            database: The database of the store.
        """
        self._database = database

    def image_files(self, paths: Sequence[str]) -> dict[str, ImageFile]:
        """Look up metadata of image files.

        Args:
            paths: Paths of images.

        Returns:
            Path -> metadata, for the files that were inspected before and whose rows can be read.
        """
        keys = {path: _image_key(path) for path in paths}
        bodies = self._database.bodies(schema.images, list(keys.values()))
        found = {}
        for path, key in keys.items():
            # A damaged row is a missing row: the file is inspected again.
            with suppress(ValueError):
                if key in bodies:
                    found[path] = _decode(path, bodies[key])
        return found

    def add_image_files(self, files: Sequence[ImageFile]) -> None:
        """Store metadata of image files.

        Args:
            files: The metadata; it replaces older metadata of the same path.
        """
        self._database.add_bodies(schema.images, {_image_key(file.path): _encode(file) for file in files})

    def vectors(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up text vectors, or the values of text metrics.

        Args:
            keys: SHA-256 of embedder and text, or of metric and texts.

        Returns:
            Key -> 32-bit floats of the vector, or one 64-bit float of the metric, little-endian.
        """
        return self._database.bodies(schema.vectors, keys)

    def add_vectors(self, vectors: Mapping[bytes, bytes]) -> None:
        """Store text vectors, or values of text metrics.

        Args:
            vectors: As `vectors` returns them.
        """
        self._database.add_bodies(schema.vectors, vectors)

    def readings(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up OCR results.

        Args:
            keys: SHA-256 of OCR reader and image.

        Returns:
            Key -> the words as JSON.
        """
        return self._database.bodies(schema.readings, keys)

    def add_readings(self, readings: Mapping[bytes, bytes]) -> None:
        """Store OCR results.

        Args:
            readings: As `readings` returns them.
        """
        self._database.add_bodies(schema.readings, readings)

    def results(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up judged results, or lines of their files.

        Args:
            keys: SHA-256 of what a result depends on.

        Returns:
            Key -> what `add_results` stored.
        """
        return self._database.bodies(schema.results, keys)

    def add_results(self, results: Mapping[bytes, bytes]) -> None:
        """Store judged results, or lines of their files.

        Args:
            results: As `results` returns them.
        """
        self._database.add_bodies(schema.results, results)


def check_image_row(body: bytes) -> None:
    """Check the metadata of an image file.

    Args:
        body: The body of a row.

    Raises:
        ValueError: It is damaged.
    """
    file = _decode("", body)
    if len(file.digest) != 64 or min(file.width, file.height, file.stamp[0]) <= 0:
        raise ValueError("digest, width, height or size is impossible")


def _image_key(path: str) -> bytes:
    """128 bits of the SHA-256: enough to tell paths apart."""
    return hashlib.sha256(path.encode(errors="surrogateescape")).digest()[:16]


def _encode(file: ImageFile) -> bytes:
    """Metadata as a short row: the path is in the key."""
    return msgspec.msgpack.encode(
        (bytes.fromhex(file.digest), file.format, file.width, file.height, *file.stamp, file.transform)
    )


def _decode(path: str, body: bytes) -> ImageFile:
    digest, form, width, height, size, changed, transform = _ROW.decode(body)
    return ImageFile(path, digest.hex(), form, width, height, (size, changed), transform)
