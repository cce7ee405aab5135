"""Caches in the store that may be dropped: image metadata, vectors, OCR results."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from sightline.engine.database import Database, insert, rows_in
from sightline.engine.database_errors import repeat_if_lost
from sightline.images import FoundImage
from sightline.types import ImageFile

_ROW = msgspec.msgpack.Decoder(tuple[bytes, str, int, int, int, int, str])
"""An image: digest, format, width, height, size in bytes, modification time in ns, transform."""


class CacheTable:
    """A table of bodies by key. What is missing in it is computed again."""

    def __init__(self, database: Database, table: str) -> None:
        """Prepare it; nothing is read yet.

        Args:
            database: The database of the store.
            table: The name of a table with the columns `key` and `body`.
        """
        self._database = database
        self._table = table

    @repeat_if_lost
    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up bodies.

        Args:
            keys: Keys.

        Returns:
            Key -> body, for the keys that exist. A body of another type, which SQLite accepts, is missing.
        """
        with self._database.read() as connection:
            query = f"SELECT key, body FROM {self._table} WHERE key IN ({{}})"
            rows = rows_in(connection, query, keys)
            return {bytes(key): bytes(body) for key, body in rows if isinstance(body, bytes)}

    @repeat_if_lost
    def add(self, bodies: Mapping[bytes, bytes]) -> None:
        """Store bodies; they replace rows of the same key, which may be damaged.

        Args:
            bodies: Key -> body.
        """
        if bodies:
            with self._database.write() as connection:
                replace = "ON CONFLICT (key) DO UPDATE SET body = excluded.body"
                insert(connection, self._table, ("key", "body"), sorted(bodies.items()), replace)


class Caches:
    """What Sightline computes again where it is missing. Use it as `store.caches`.

    Attributes:
        vectors: Text vectors as 32-bit floats, by the SHA-256 of embedder and text; values of text metrics as
            one 64-bit float, by the SHA-256 of metric and texts. All are little-endian.
        readings: OCR results, the words as JSON, by the SHA-256 of OCR reader and image.
    """

    def __init__(self, database: Database) -> None:
        """Prepare it; nothing is read yet.

        Args:
            database: The database of the store.
        """
        self.vectors = CacheTable(database, "vectors")
        self.readings = CacheTable(database, "readings")
        self._images = CacheTable(database, "images")

    def image_files(self, keys: Mapping[str, bytes]) -> dict[str, ImageFile]:
        """Look up metadata of image files.

        Args:
            keys: Image path -> the key of its file.

        Returns:
            Path -> metadata, for the files that were inspected before and whose rows can be read.
        """
        bodies = self._images.look_up(list(keys.values()))
        found = {}
        for path, key in keys.items():
            # A damaged row is a missing row: the file is inspected again.
            with suppress(ValueError):
                if key in bodies:
                    found[path] = _decode(path, bodies[key])
        return found

    def add_image_files(self, keys: Mapping[str, bytes], files: Iterable[ImageFile]) -> None:
        """Store metadata of image files.

        Args:
            keys: Image path -> the key that its file had before it was inspected.
            files: The metadata; it replaces older metadata of the same file.
        """
        self._images.add({keys[file.path]: _encode(file) for file in files})


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


def image_key(found: FoundImage) -> bytes:
    """The key under which the metadata of an image file are cached.

    A path alone is not a file: another folder or machine may have another one there, of equal size and time.

    Args:
        found: The file.

    Returns:
        128 bits of a SHA-256 of its name, number and last change.
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
