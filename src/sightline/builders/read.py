"""OcrResult: what is written in images, word by word and box by box, by a reader (OCR)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from sightline.builders.image_index import CheckedImages, images_in
from sightline.builders.image_io import SUFFIXES
from sightline.builders.process_pool import spread
from sightline.engine.ocr_cache import OcrResult, read_images
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.files import write_atomically
from sightline.images import BadImage
from sightline.models.ocr import Reader, Word
from sightline.progress import progress
from sightline.types import ImageRef


class ImageTextLine(Struct, frozen=True):
    """An image and what stands in it: one line of the file.

    `image_id` is its name as captions have it, `digest` the SHA-256 of its bytes, `reader` the identity of
    who read it; `words` are in reading order, their boxes in pixels of the upright image.
    """

    image_id: str
    digest: str
    reader: str
    words: tuple[Word, ...]


def images_at(paths: Sequence[Path]) -> dict[str, ImageRef]:
    """The images in data folders, folders of images and groups files, and image files, by name.

    Those of a single folder or groups file are named as `images_in` names them; else a name begins with the
    path that was given. UserError where there is no image at a path.
    """
    found: dict[str, ImageRef] = {}
    for path in paths:
        if path.suffix.lower() in SUFFIXES and not path.is_dir():
            if not path.is_file():
                raise UserError("there is no such image", file=path)
            found[str(path)] = ImageRef(str(path))
            continue
        inside = images_in(path)
        if len(paths) > 1:
            inside = {os.path.join(path, name): image for name, image in inside.items()}
        found.update(inside)
    return found


def read_all(
    gallery: CheckedImages, reader: Reader, store: Store, *, processes: int = 1, show_progress: bool = False
) -> dict[str, OcrResult]:
    """The words in every image that can be shown, by name, in the gallery's order; or why one is not read.

    Each distinct image is read once, by several processes where asked for (the reader must be picklable),
    and none that the store knows. Interrupted, it keeps what was read so far. EnvironmentFailedError where the
    store fails or a process dies.
    """
    found: dict[str, OcrResult] = {}
    over = partial(spread, processes=processes)
    distinct = len({file.digest for file in gallery.files.values()})
    with progress("reading images", distinct, "images", show_progress=show_progress) as advance:
        for (digest, _), words in read_images(gallery.files.values(), reader, store, over):
            found[digest] = words
            advance(1)
    return gallery.named(found)


def write(read: Mapping[str, OcrResult], gallery: CheckedImages, reader: Reader, out: Path) -> None:
    """Write a line for each image that was read. EnvironmentFailedError where the disk refuses."""
    lines = (
        ImageTextLine(name, gallery.files[name].digest, reader.identity, words)
        for name, words in read.items()
        if not isinstance(words, BadImage)
    )
    write_atomically(out, (msgspec.json.encode(line) + b"\n" for line in lines))
