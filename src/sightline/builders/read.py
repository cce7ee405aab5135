"""Reads the text in images by OCR, word by word with boxes, and writes files of captions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from sightline.benchmarks.released import read_captions
from sightline.builders.folder import SUFFIXES
from sightline.builders.run import map_in_processes
from sightline.builders.sources import CheckedImages, images_in
from sightline.engine.client import Caption
from sightline.errors import UserError
from sightline.formats.files import refuse_overwriting, write_atomically
from sightline.images import BadImage
from sightline.models.ocr import Reader, Word
from sightline.progress import progress
from sightline.store.store import OcrResult, Store, read_images
from sightline.types import ImageRef


class ImageTextLine(Struct, frozen=True):
    """A line of the OCR file. `digest`: SHA-256 of its bytes. `words`: the words in reading order, with boxes
    in pixels of the upright image.
    """

    image_id: str
    digest: str
    reader: str
    words: tuple[Word, ...]


def images_at(paths: Sequence[Path]) -> dict[str, ImageRef]:
    """Find images in data folders, folders of images, groups files, and image files."""
    images: dict[str, ImageRef] = {}
    for path in paths:
        if path.suffix.lower() in SUFFIXES and not path.is_dir():
            if not path.is_file():
                raise UserError("there is no such image", file=path)
            images[str(path)] = ImageRef(str(path))
            continue
        inside = images_in(path)
        if len(paths) > 1:
            inside = {os.path.join(path, name): image for name, image in inside.items()}
        images.update(inside)
    return images


def read_all(
    gallery: CheckedImages,
    reader: Reader,
    store: Store,
    *,
    processes: int = 1,
    show_progress: bool = False,
) -> dict[str, OcrResult]:
    """Read the text of images. Each distinct image is read once; the store caches the text.

    An interrupted call keeps what was read so far.
    """
    texts: dict[str, OcrResult] = {}
    distinct = len({file.digest for file in gallery.files.values()})
    with progress("reading images", distinct, "images", show_progress=show_progress) as advance:
        mapper = partial(map_in_processes, processes=processes)
        for (digest, _), words in read_images(gallery.files.values(), reader, store, mapper):
            texts[digest] = words
            advance(1)
    return gallery.named(texts)


def write_ocr_texts(
    texts: Mapping[str, OcrResult], gallery: CheckedImages, reader: Reader, out: Path
) -> None:
    lines = (
        ImageTextLine(name, gallery.files[name].digest, reader.identity, words)
        for name, words in texts.items()
        if not isinstance(words, BadImage)
    )
    write_atomically(out, (msgspec.json.encode(line) + b"\n" for line in lines))


# -- Writes a file of captions, and refuses to replace captions that the same command would not write


def refuse_other_captions(out: Path, captions: Mapping[str, Caption], *, force: bool = False) -> None:
    """Refuse a file with other captions, so that corrections by hand are not lost."""
    refuse_overwriting(out, force=True)
    if force or not out.exists():
        return
    remedy = "another --out, or --force"
    try:
        existing = read_captions(str(out), needed=True)
    except UserError:
        raise UserError("contains something else", file=out, expected=remedy) from None
    for name, text in existing.items():
        if name not in captions or captions[name].text != text:
            problem = "contains a caption that this command did not write"
            raise UserError(problem, file=out, record=name, found=text, expected=remedy)


def write_captions(captions: Mapping[str, Caption], model: str, out: Path) -> None:
    """Write the captions as a JSON list of image_id, caption, model and reply, one on a line."""
    lines = [
        msgspec.json.encode({"image_id": name, "caption": one.text, "model": model, "reply": one.key})
        for name, one in captions.items()
        if one.text
    ]
    write_atomically(out, [b"[\n", b",\n".join(lines), b"\n]\n"])
