"""The store: all answers, runs, probes, verdicts and image metadata, as one object."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path

import msgspec

from sightline.formats.files import text_digest
from sightline.images import BadImage, FoundImage, find_image, inspect_found
from sightline.models.ocr import Reader, Word
from sightline.store import schema
from sightline.store.answers import Answers, EndpointLog
from sightline.store.claims import Claims, seconds_since_boot
from sightline.store.connect import connect, prepare
from sightline.store.database import (
    Database,
    NoStoreError,
    SqliteFile,
    insert,
    repeat_if_lost,
    rows_in,
)
from sightline.store.runs import RunLabels, Runs
from sightline.types import HiddenContent, ImageFile, ImageRef

# -- The store: the cache of all answers, and the record of runs, probes, verdicts and image metadata


class Store:
    """One open store. The methods of its parts block; EnvironmentFailedError: the database failed."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = seconds_since_boot,
    ) -> None:
        """`clock` is the seconds since 1970, `uptime` those since the machine started."""
        self.name = database.name
        self.database = database
        self.claims = Claims(self.database, uptime)
        self.answers = Answers(self.database, self.claims, clock)
        self.runs = Runs(self.database, self.claims, clock)
        self.labels = RunLabels(self.database)
        self.endpoints = EndpointLog(self.database, clock)
        self.caches = Caches(self.database)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        create: bool = True,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = seconds_since_boot,
    ) -> Store:
        database = connect(url, create=create)
        try:
            database.check_connection()
            prepare(database, create=create)
        except BaseException:
            database.close()
            raise
        return cls(database, clock, uptime)

    def guarded_copy(self, path: Path) -> Store:
        """Copy a store in a file to a new file, whose copy refuses whatever is no cache and no index."""
        self.database.copy_to(path)
        file = SqliteFile(path)
        copy = Store(Database(self.name, file.create_engine, file))
        with copy.database.write() as connection:
            for table, change in product(schema.TABLES - _UNGUARDED, ("INSERT", "UPDATE", "DELETE")):
                connection.change(
                    f"CREATE TRIGGER no_{change}_{table} BEFORE {change} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, 'it cannot be written here'); END"
                )
        return copy

    def close(self) -> None:
        self.database.close()


_UNGUARDED = frozenset({"images", "vectors", "readings", "meta"})
"""Tables of caches, and the URL of the server: writing them is no promise to anybody."""


# -- Metadata of image files: inspected once, cached in the store until a file changes


def inspect_images(
    images: Mapping[str, ImageRef],
    store: Store,
    *,
    records: bool,
) -> dict[str, ImageFile | BadImage]:
    found: dict[str, FoundImage] = {}
    inspected: dict[str, ImageFile | BadImage] = {}
    for path, image in images.items():
        try:
            found[path] = find_image(image)
        except BadImage as error:
            inspected[path] = error
    keys = {path: image_key(file) for path, file in found.items()}
    cached = store.caches.image_files(keys)
    for path, file in found.items():
        try:
            inspected[path] = inspect_found(file, cached)
        except BadImage as error:
            inspected[path] = error
    if records:
        new = (file for path, file in inspected.items() if file is not cached.get(path))
        store.caches.add_image_files(keys, [file for file in new if isinstance(file, ImageFile)])
    return inspected


# -- OCR results: each image is read once by each OCR reader, and cached in the store

ImageVersion = tuple[str, str]
"""An image as a model receives it: its digest, and the transform applied to it."""

OcrResult = tuple[Word, ...] | BadImage
"""The words in an image, or why it cannot be read."""

_Read = tuple[ImageFile, OcrResult]
Mapper = Callable[[Callable[[ImageFile], _Read], Sequence[ImageFile]], Iterable[_Read]]
"""Applies a function to images: one after the other like `map`, or in several processes."""

_decoder = msgspec.json.Decoder(tuple[Word, ...])


def read_images(
    images: Iterable[ImageFile], reader: Reader, store: Store, mapper: Mapper = map
) -> Iterator[tuple[ImageVersion, OcrResult]]:
    """Read the words in images; cached results come first.

    Each result is stored as soon as it exists, so that an interruption loses only the image in work. An
    image that cannot be read does not affect others, and is tried again the next time.
    """
    distinct = {(image.digest, image.transform): image for image in images}
    cached = _cached(distinct, reader, store)
    yield from cached.items()
    unread = [image for version, image in distinct.items() if version not in cached]
    for image, words in mapper(partial(_read, reader), unread):
        version = (image.digest, image.transform)
        if not isinstance(words, BadImage):
            store.caches.readings.add({_key(reader, version): msgspec.json.encode(words)})
        yield version, words


def cached_words(
    images: Iterable[ImageFile], reader: Reader, store: Store
) -> dict[ImageVersion, tuple[Word, ...]]:
    return _cached([(image.digest, image.transform) for image in images], reader, store)


def _cached(
    versions: Iterable[ImageVersion], reader: Reader, store: Store
) -> dict[ImageVersion, tuple[Word, ...]]:
    keys = {version: _key(reader, version) for version in versions}
    bodies = store.caches.readings.look_up(list(keys.values()))
    found = {}
    for version, key in keys.items():
        # A damaged row is a missing row: the image is read again.
        with suppress(ValueError):
            if key in bodies:
                found[version] = _decoder.decode(bodies[key])
    return found


def _read(reader: Reader, image: ImageFile) -> _Read:
    try:
        return image, reader.read(image)
    except BadImage as error:
        return image, error


def _key(reader: Reader, version: ImageVersion) -> bytes:
    digest, transform = version
    named = "\n".join([reader.identity, digest, transform])
    return bytes.fromhex(text_digest(named))


# -- Opens a store that is only read, as dry runs do: a store that does not exist is not created


@contextmanager
def existing_or_empty_store(url: str) -> Iterator[Store]:
    """Open a store that is only read; an empty temporary one stands for one that is missing."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            store = Store.open(url, create=False)
        except NoStoreError:
            store = Store.open(f"{scratch}/none.db")
        try:
            yield store
        finally:
            store.close()


# -- Caches in the store that may be dropped: image metadata, vectors, OCR results

_ROW = msgspec.msgpack.Decoder(tuple[bytes, str, int, int, int, int, str, tuple[HiddenContent, ...]])
"""An image: digest, format, width, height, size in bytes, modification time in ns, transform, hidden."""


class CacheTable:
    """A table of bodies by key. What is missing in it is computed again."""

    def __init__(self, database: Database, table: str) -> None:
        self._database = database
        self._table = table

    @repeat_if_lost
    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        if not keys:
            return {}
        with self._database.read() as connection:
            query = f"SELECT key, body FROM {self._table} WHERE key IN ({{}})"
            rows = rows_in(connection, query, keys)
            return {bytes(key): bytes(body) for key, body in rows if isinstance(body, bytes)}

    @repeat_if_lost
    def add(self, bodies: Mapping[bytes, bytes]) -> None:
        """Store bodies, unless the store is read-only; they replace rows of a key, which may be damaged."""
        if bodies and not self._database.is_read_only:
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
        bodies = self._images.look_up(list(keys.values()))
        found = {}
        for path, key in keys.items():
            # A damaged row is a missing row: the file is inspected again.
            with suppress(ValueError):
                if key in bodies:
                    found[path] = _decode(path, bodies[key])
        return found

    def add_image_files(self, keys: Mapping[str, bytes], files: Iterable[ImageFile]) -> None:
        self._images.add({keys[file.path]: _encode(file) for file in files})


def check_image_row(body: bytes) -> None:
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
        (
            bytes.fromhex(file.digest),
            file.format,
            file.width,
            file.height,
            *file.stamp,
            file.transform,
            file.hidden,
        )
    )


def _decode(path: str, body: bytes) -> ImageFile:
    digest, form, width, height, size, changed, transform, hidden = _ROW.decode(body)
    return ImageFile(path, digest.hex(), form, width, height, (size, changed), transform, hidden)
