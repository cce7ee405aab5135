"""The texts that replace images: OCR text and captions, from the store or made now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sightline.engine.image_cache import inspect_images
from sightline.engine.ocr_cache import OcrResult, cached_words, read_images
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.evaluation.augment import CaptionFile, CaptionModel, ImageReplacement
from sightline.images import BadImage
from sightline.models.augmented import Augmented, ImageText, text_of
from sightline.models.ocr import Reader
from sightline.progress import progress
from sightline.types import ImageFile, ImageRef


class UncachedImages(NamedTuple):
    """How many distinct images a run would read by OCR, and how many captions it would ask for."""

    to_read: int
    to_caption: int


class _ImageTexts(NamedTuple):
    """OCR results and captions by image digest; an OCR result is None where the image is not read yet."""

    readings: Mapping[str, OcrResult | None]
    captions: Mapping[str, str | BadImage]


async def images_as_text(
    replacement: ImageReplacement, images: Mapping[str, ImageRef], store: Store, *, show_progress: bool
) -> Augmented:
    """Read each image by OCR, and ask for its caption, unless the store holds them.

    Cancelled, everything read and answered so far is kept.
    """
    files = await run_in_thread(inspect_images, images, store, records=True)
    readable = [file for file in files.values() if isinstance(file, ImageFile)]
    read = await _read(readable, replacement.reader, store, show_progress=show_progress)
    captions: dict[str, str | BadImage] = {}
    if isinstance(replacement.captions, CaptionModel):
        described = await replacement.captions.captioner.describe(
            readable, store, show_progress=show_progress
        )
        captions = {
            digest: one.text or BadImage(f"has no caption: {one.missing}")
            for digest, one in described.items()
        }
    return await run_in_thread(_augmented, replacement, images, files, _ImageTexts(read, captions))


def cached_images_as_text(
    replacement: ImageReplacement, images: Mapping[str, ImageRef], store: Store
) -> tuple[Augmented, UncachedImages]:
    """The texts that the store holds, with placeholders for the others. Nothing is read, sent or written."""
    files = inspect_images(images, store, records=False)
    readable = {file.digest: file for file in files.values() if isinstance(file, ImageFile)}
    cached = cached_words(readable.values(), replacement.reader, store)
    read: dict[str, OcrResult | None] = {digest: cached.get((digest, "")) for digest in readable}
    captions: dict[str, str | BadImage] = {}
    to_caption = 0
    if isinstance(replacement.captions, CaptionModel):
        captioner = replacement.captions.captioner
        described = captioner.cached(readable.values(), store)
        captions = {digest: one.text or f"(a caption of {digest})" for digest, one in described.items()}
        to_caption = captioner.estimate(readable.values(), store).to_send
    uncached = UncachedImages(sum(words is None for words in read.values()), to_caption)
    return _augmented(replacement, images, files, _ImageTexts(read, captions)), uncached


async def _read(
    files: Sequence[ImageFile], reader: Reader, store: Store, *, show_progress: bool
) -> dict[str, OcrResult | None]:
    """The words in each image by its digest. A thread reads one image at a time, so Ctrl-C waits for one."""
    read: dict[str, OcrResult | None] = {}
    steps = read_images(files, reader, store)
    distinct = len({file.digest for file in files})
    with progress("reading images", distinct, "images", show_progress=show_progress) as advance:
        while (step := await run_in_thread(lambda: next(steps, None))) is not None:
            (digest, _), words = step
            read[digest] = words
            advance(1)
    return read


def _augmented(
    replacement: ImageReplacement,
    images: Mapping[str, ImageRef],
    files: Mapping[str, ImageFile | BadImage],
    texts: _ImageTexts,
) -> Augmented:
    """The text of every image by its path, or the error that it has none."""
    by_path: dict[str, ImageText | BadImage] = {}
    for path, file in files.items():
        if isinstance(file, BadImage):
            by_path[path] = file
            continue
        words = texts.readings[file.digest]
        caption = _caption(replacement, images[path], texts.captions.get(file.digest, ""))
        if isinstance(words, BadImage):
            by_path[path] = words
        elif isinstance(caption, BadImage):
            by_path[path] = BadImage(f"{path}: {caption}")
        else:
            text = f"(the text in {file.digest})" if words is None else text_of(words, replacement.how)
            by_path[path] = ImageText(text, caption)
    return Augmented(replacement.how, by_path)


def _caption(replacement: ImageReplacement, image: ImageRef, written: str | BadImage) -> str | BadImage:
    """The caption of an image: from the caption file if there is one, otherwise as the model wrote it."""
    file = replacement.captions
    if not isinstance(file, CaptionFile):
        return written
    name = file.name_of(image)
    return BadImage(f"has no caption in {file.path}") if name is None else file.captions[name]
