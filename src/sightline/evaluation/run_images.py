"""The images of runs: found in their data folders, checked against the digest that was sent; thumbnails."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sightline.errors import UserError
from sightline.formats.files import AtomicFile
from sightline.images import BadImage, inspect_image, read_bytes, read_image
from sightline.store.store import Store, inspect_images
from sightline.types import ImageFile, ImageRef, Outcome

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
    """The images of a run; `store` keeps their thumbnails."""

    store: Store | None
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
        assert self.store is not None, "thumbnails are kept beside a store"
        name = f"{digest or self.find(path, digest).digest}.webp"
        kept = self.store.database.index_folder / "thumbnails" / name
        with suppress(OSError):
            return kept.read_bytes()
        body = _shrunk(self.find(path, digest))
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with AtomicFile(kept) as file:
            file.write(body)
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
