"""The store: all answers, runs, probes, verdicts, image metadata and batches at providers, as one object."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sightline.formats.files import text_digest
from sightline.images import BadImage, FoundImage, find_image, inspect_found
from sightline.models.batch_client import OpenBatch
from sightline.models.ocr import Reader, Word
from sightline.store import schema
from sightline.store.answers import Answers, EndpointLog, State, storable_text
from sightline.store.claims import Claims, seconds_since_boot
from sightline.store.connect import connect, prepare
from sightline.store.database import (
    Connection,
    Database,
    change_rows_in,
    insert,
    rows_in,
    run_in_thread,
)
from sightline.store.failures import NoStoreError, repeat_if_lost
from sightline.store.runs import RunLabels, Runs
from sightline.store.sqlite_file import SqliteFile
from sightline.types import HiddenContent, ImageFile, ImageRef

NEW = "new"
"""The state of a batch that the provider may not have created yet."""

_BATCHES = "SELECT id, address, file, batch, state, requests, created FROM batches ORDER BY id"


# -- Batches at providers: which requests are in which batch, until they are answered
#
# A batch is added before the provider creates it. So nothing is sent twice, even if the process is killed at
# any moment: the next one finds the batch here, or by its input file in the provider's list.
#
# A batch may take a day, and claims are renewed each second. So the process that follows a batch has one
# claim on it, instead of one on each request: what is in a batch, the journal says already. The claims on the
# requests return when the batch has ended, and hold until the results are stored.


class InBatches(NamedTuple):
    """The keys of requests in batches: those that this process may fetch, and those that another one has."""

    own: set[str]
    elsewhere: set[str]


class BatchJournal:
    """The batches in one open store. Use it as `store.batches`. Methods that are not async block."""

    def __init__(self, database: Database, claims: Claims, clock: Callable[[], float]) -> None:
        """`clock` returns the seconds since 1970."""
        self._database = database
        self._claims = claims
        self._clock = clock

    async def add(self, address: str, file: str, keys: Sequence[str]) -> OpenBatch | None:
        own_keys = [bytes.fromhex(key) for key in keys]
        return await run_in_thread(self._claim_and_add, storable_text(address), file, own_keys)

    async def find(self, keys: Sequence[str]) -> list[OpenBatch]:
        return await run_in_thread(self.holding, keys)

    async def record_id(self, number: int, batch: str | None) -> None:
        await run_in_thread(self._record_id, number, batch)

    async def record_state(self, number: int, state: str) -> None:
        await run_in_thread(self._record_state, number, state[:40])

    async def leave(self, batch: OpenBatch, keys: Sequence[str]) -> None:
        await run_in_thread(self._leave, batch, keys)

    async def remove(self, number: int, keys: Sequence[str]) -> None:
        await run_in_thread(self._remove, number, [bytes.fromhex(key) for key in keys])

    @repeat_if_lost
    def holding(self, keys: Sequence[str]) -> list[OpenBatch]:
        """Find the batches that hold any of some requests, none of which has an answer."""
        found: dict[int, set[str]] = defaultdict(set)
        with self._database.read() as connection:
            query = "SELECT key, batch FROM batch_requests WHERE key IN ({})"
            for key, number in rows_in(connection, query, [bytes.fromhex(key) for key in keys]):
                found[number].add(bytes(key).hex())
            if not found:
                return []  # as for most runs: this is asked often
            rows = [row for row in connection.rows(_BATCHES) if row[0] in found]
        return [_open_batch(row, found[row[0]]) for row in rows]

    def take(self, keys: Sequence[str]) -> InBatches:
        """Reserve the batches that hold any of some requests for this process, which then follows them."""
        batches = self.holding(keys)
        if not batches:
            return InBatches(set(), set())
        taken = self._claims.take([_claim_key(batch.address, batch.file).hex() for batch in batches])
        if taken:
            batches = self.holding(keys)  # another process may have ended one before it was taken
        held = {key for batch in batches for key in batch.keys}
        in_own = {
            key
            for batch in batches
            if _claim_key(batch.address, batch.file).hex() in taken
            for key in batch.keys
        }
        # The process that followed the batch before may be storing its results.
        own = self._claims.free(list(in_own)) if in_own else set()
        return InBatches(own, held - own)

    @repeat_if_lost
    def followed(self) -> list[bytes]:
        batches = self.all()
        held = set(self._claims.held()) if batches else set()
        numbers = [batch.number for batch in batches if _claim_key(batch.address, batch.file) in held]
        query = "SELECT key FROM batch_requests WHERE batch IN ({})"
        with self._database.read() as connection:
            return [bytes(key) for (key,) in rows_in(connection, query, numbers)]

    @repeat_if_lost
    def all(self) -> list[OpenBatch]:
        with self._database.read() as connection:
            return [_open_batch(row) for row in connection.rows(_BATCHES)]

    @repeat_if_lost
    def close_answered(self) -> None:
        """Remove the requests whose answers are in the store, and the batches that have no others."""
        with self._database.read() as connection:
            if not connection.rows("SELECT id FROM batches LIMIT 1"):
                return
        with self._database.write() as connection:
            drop_answered(connection)

    def _claim_and_add(self, address: str, file: str, keys: Sequence[bytes]) -> OpenBatch | None:
        claim = _claim_key(address, file)
        self._claims.take([claim.hex()])
        batch = self._add(address, file, keys)
        if batch is None:
            self._end_claim(claim)
        return batch

    @repeat_if_lost
    def _add(self, address: str, file: str, keys: Sequence[bytes]) -> OpenBatch | None:
        with self._database.write() as connection:
            taken = (
                "SELECT key FROM batch_requests WHERE key IN ({})",
                f"SELECT key FROM answers WHERE state = {State.ANSWERED.value} AND key IN ({{}})",
            )
            if any(True for query in taken for _ in rows_in(connection, query, keys)):
                return None
            about = (file, NEW, len(keys), self._clock())
            add = (
                "INSERT INTO batches (address, file, state, requests, created) VALUES (?, ?, ?, ?, ?) "
                "RETURNING id"
            )
            ((number,),) = connection.rows(add, (address, *about))
            rows = [(key, number) for key in sorted(keys)]
            insert(connection, "batch_requests", ("key", "batch"), rows, "ON CONFLICT DO NOTHING")
            own = "SELECT count(*) FROM batch_requests WHERE batch = ?"
            if connection.rows(own, (number,))[0][0] != len(rows):
                connection.roll_back()  # another process was faster
                return None
            self._claims.end(connection, sorted(keys))
        state, requests, created = about[1:]
        row = (number, address, file, None, state, requests, created)
        return _open_batch(row, (key.hex() for key in keys))

    def _leave(self, batch: OpenBatch, keys: Sequence[str]) -> None:
        """Take claims on requests in place of the one on their batch, so that at each moment one holds."""
        taken = self._claims.take(keys)
        self._end_claim(_claim_key(batch.address, batch.file))
        # Further requests of the batch may wait to be fetched by this process, without a claim from now on.
        if len(taken) < len(keys) or len(batch.keys) < batch.requests:
            self._claims.doubt()

    @repeat_if_lost
    def _end_claim(self, claim: bytes) -> None:
        with self._database.write() as connection:
            self._claims.end(connection, [claim])

    @repeat_if_lost
    def _record_id(self, number: int, batch: str | None) -> None:
        with self._database.write() as connection:
            connection.change("UPDATE batches SET batch = ? WHERE id = ?", (batch, number))
            if not batch:
                connection.change("UPDATE batches SET state = ? WHERE id = ?", (NEW, number))

    @repeat_if_lost
    def _record_state(self, number: int, state: str) -> None:
        with self._database.write() as connection:
            connection.change("UPDATE batches SET state = ? WHERE id = ?", (state, number))

    @repeat_if_lost
    def _remove(self, number: int, keys: Sequence[bytes]) -> None:
        with self._database.write() as connection:
            query = "DELETE FROM batch_requests WHERE batch = {} AND key IN ({})"
            change_rows_in(connection, query, (number,), keys)
            _drop_empty(connection)


def drop_answered(connection: Connection) -> int:
    """Drop the requests of batches that have an answer, and the batches that have no other request."""
    answered = "SELECT id FROM answers WHERE answers.key = batch_requests.key AND answers.state = ?"
    query = f"DELETE FROM batch_requests WHERE EXISTS ({answered})"
    dropped = connection.change(query, (State.ANSWERED.value,))
    _drop_empty(connection)
    return dropped


def _claim_key(address: str, file: str) -> bytes:
    """The key of the claim on a batch, as if the batch were a request."""
    return sha256(f"batch\0{address}\0{file}".encode()).digest()


def _drop_empty(connection: Connection) -> None:
    requests = "SELECT batch_requests.key FROM batch_requests WHERE batch_requests.batch = batches.id"
    connection.change(f"DELETE FROM batches WHERE NOT EXISTS ({requests})")


def _open_batch(row: Sequence[Any], keys: Iterable[str] = ()) -> OpenBatch:
    names = ("number", "address", "file", "batch", "state", "requests", "created")
    return OpenBatch(**dict(zip(names, row, strict=True)), keys=frozenset(keys))


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
        self.batches = BatchJournal(self.database, self.claims, clock)
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


_UNGUARDED = frozenset({"meta", "images", "vectors", "readings"})
"""Tables of caches, and of where a store was served: writing them is no promise to anybody."""


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
    """Raise ValueError if the metadata of an image file is damaged."""
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
