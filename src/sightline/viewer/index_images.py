"""The images of runs: found in their data folders, checked against the digest that was sent; thumbnails."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select

from sightline.errors import UserError
from sightline.images import BadImage, inspect_image, read_bytes, read_image
from sightline.store import schema
from sightline.store.store import CacheTable, Store, inspect_images
from sightline.types import ImageFile, ImageRef, Outcome
from sightline.viewer.index_types import IndexedImage

SIDE = 320
"""The longest side of a thumbnail in pixels."""

QUALITY = 80

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
        """Read an image as every model sees it, in a format that every browser shows."""
        file = self.find(path, digest)
        try:
            return ImageContent(*read_bytes(file))
        except BadImage as error:
            raise ImageError(str(error)) from None

    def thumbnail(self, path: str, digest: str) -> bytes:
        """Read a WebP image of at most SIDE pixels wide and high; it is made once."""
        table = CacheTable(self.store.database, schema.thumbnails.name)
        key = bytes.fromhex(digest or self.find(path, digest).digest)
        body = table.look_up([key]).get(key)
        if body is None:
            body = _shrunk(self.find(path, digest))
            table.add({key: body})
        return body

    def find(self, path: str, digest: str) -> ImageFile:
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


# -- The digests of the images of answers: those that requests hold, or those of the files in the data
#    folder

ImageDigests = Callable[[Sequence[Outcome]], Mapping[str, Sequence[str]]]
"""Finds the SHA-256 of each image of some outcomes, by answer key, as far as they are known."""


def image_digests(store: Store, folders: Sequence[Path]) -> ImageDigests:
    def find(outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[str]]:
        keys = sorted({outcome.key for outcome in outcomes})
        sent = store.answers.images(keys) if keys else {}
        others = [outcome for outcome in outcomes if not sent.get(outcome.key)]
        files = _files(store, folders, {path for outcome in others for path in outcome.images})
        found = {
            outcome.key: tuple(files[path] for path in outcome.images)
            for outcome in others
            if all(path in files for path in outcome.images)
        }
        return {**sent, **found}

    return find


def _files(store: Store, folders: Iterable[Path], paths: set[str]) -> dict[str, str]:
    """Path -> the digest of its file, in the first folder that has it."""
    found: dict[str, str] = {}
    for folder in folders:
        images = {
            path: ImageRef(os.path.join(folder, path), str(folder)) for path in sorted(paths - found.keys())
        }
        files = inspect_images({image.path: image for image in images.values()}, store, records=True)
        for path, image in images.items():
            if isinstance(file := files[image.path], ImageFile):
                found[path] = file.digest
    return found


# -- The images that an index holds: their paths in the data folder, and their digests

_DIGEST = re.compile("[0-9a-f]{64}")


class IndexedImages:
    """The images of one index. Several threads may use it."""

    def __init__(self, store: Store, run: int, index_id: int) -> None:
        self._store = store
        self._run = run
        self._id = index_id

    def path(self, digest: str) -> str:
        """Look up where an image is by its SHA-256 in hexadecimal."""
        path = self._path(bytes.fromhex(digest)) if _DIGEST.fullmatch(digest) else None
        if path is None:
            raise ImageError(
                f"run {self._run} has no such image", found=digest, expected="an image of its groups"
            )
        return os.fsdecode(path)

    def of(self, outcomes: Sequence[Outcome]) -> dict[str, IndexedImage]:
        shown = [outcome for outcome in outcomes if outcome.images]
        if not shown:
            return {}
        paths = {path for outcome in shown for path in outcome.images}
        digests = self._digests(paths)
        held = self._store.answers.images(sorted({outcome.key for outcome in shown}))
        sent = {digest for of_request in held.values() for digest in of_request}
        return {
            path: IndexedImage(path, found := digests.get(path, ""), is_sent=found in sent) for path in paths
        }

    def _path(self, digest: bytes) -> bytes | None:
        table = schema.index_images.c
        query = select(table.path).where(table.index_id == self._id, table.digest == digest)
        with self._store.database.core_read() as connection:
            path = connection.scalar(query)
        return None if path is None else bytes(path)

    def _digests(self, paths: Collection[str]) -> dict[str, str]:
        """Path in the data folder -> the SHA-256 of the file, where it is recorded."""
        table = schema.index_images.c
        encoded = [os.fsencode(path) for path in paths]
        query = select(table.path, table.digest).where(table.index_id == self._id, table.path.in_(encoded))
        with self._store.database.core_read() as connection:
            found = connection.execute(query).all()
        return {os.fsdecode(bytes(path)): bytes(digest).hex() for path, digest in found}
