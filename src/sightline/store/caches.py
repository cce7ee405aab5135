"""Caches in the store that may be dropped: image metadata, vectors, OCR results."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from sightline.images import FoundImage
from sightline.store.database import Database, insert, repeat_if_lost, rows_in
from sightline.types import ImageFile

_ROW = msgspec.msgpack.Decoder(tuple[bytes, str, int, int, int, int, str])
"""An image: digest, format, width, height, size in bytes, modification time in ns, transform."""


class CacheTable:
    """A table of bodies by key. What is missing in it is computed again."""

    def __init__(self, database: Database, table: str) -> None:
        self._database = database
        self._table = table

    @repeat_if_lost
    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up bodies."""
        if not keys:
            return {}
        with self._database.read() as connection:
            query = f"SELECT key, body FROM {self._table} WHERE key IN ({{}})"
            rows = rows_in(connection, query, keys)
            return {bytes(key): bytes(body) for key, body in rows if isinstance(body, bytes)}

    @repeat_if_lost
    def add(self, bodies: Mapping[bytes, bytes]) -> None:
        """Store bodies; they replace rows of the same key, which may be damaged."""
        if bodies:
            with self._database.write() as connection:
                replace = "ON CONFLICT (key) DO UPDATE SET body = excluded.body"
                insert(connection, self._table, ("key", "body"), sorted(bodies.items()), replace)


class Caches:
    """What Sightline computes again where it is missing. Use it as `store.caches`."""

    def __init__(self, database: Database) -> None:
        self.vectors = CacheTable(database, "vectors")
        self.readings = CacheTable(database, "readings")
        self._images = CacheTable(database, "images")

    def image_files(self, keys: Mapping[str, bytes]) -> dict[str, ImageFile]:
        """Look up metadata of image files."""
        bodies = self._images.look_up(list(keys.values()))
        found = {}
        for path, key in keys.items():
            # A damaged row is a missing row: the file is inspected again.
            with suppress(ValueError):
                if key in bodies:
                    found[path] = _decode(path, bodies[key])
        return found

    def add_image_files(self, keys: Mapping[str, bytes], files: Iterable[ImageFile]) -> None:
        """Store metadata of image files."""
        self._images.add({keys[file.path]: _encode(file) for file in files})


def check_image_row(body: bytes) -> None:
    """Check the metadata of an image file.

    Raises:
        ValueError: It is damaged.
    """
    file = _decode("", body)
    if len(file.digest) != 64 or min(file.width, file.height, file.stamp[0]) <= 0:
        raise ValueError("digest, width, height or size is impossible")


def image_key(found: FoundImage) -> bytes:
    """The key under which the metadata of an image file are cached.

    A path alone is not a file: another folder or machine may have another one there, of equal size and time.
    """
    name = f"{found.info.st_ino} {found.info.st_ctime_ns} {found.name}"
    return hashlib.sha256(name.encode(errors=sys.getfilesystemencodeerrors())).digest()[:16]


def _encode(file: ImageFile) -> bytes:
    """Metadata as a short row: the path is in the key."""
    return msgspec.msgpack.encode(
        (bytes.fromhex(file.digest), file.format, file.width, file.height, *file.stamp, file.transform)
    )


def _decode(path: str, body: bytes) -> ImageFile:
    digest, form, width, height, size, changed, transform = _ROW.decode(body)
    return ImageFile(path, digest.hex(), form, width, height, (size, changed), transform)
