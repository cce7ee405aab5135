"""OCR text and captions that replace images for a model that gets text only: from where, checked and made."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.released import read_captions
from sightline.engine.client import SAMPLING, Captioner, ClientOptions, ModelClient
from sightline.engine.limits import Account, Counts
from sightline.errors import UserError
from sightline.evaluation.spec import Spec
from sightline.formats.files import text_digest
from sightline.images import BadImage
from sightline.models.base import Model
from sightline.models.ocr import Augmented, ImageText, RapidOcr, Reader, text_of
from sightline.progress import progress
from sightline.store.database import run_in_thread
from sightline.store.store import OcrResult, Store, cached_words, inspect_images, read_images
from sightline.types import CAPTIONED, Augmentation, ImageFile, ImageRef, Sample


class CaptionFile(NamedTuple):
    """Captions from a file, by the image names that `sightline build caption` writes."""

    path: str
    digest: str
    captions: Mapping[str, str]

    def name_of(self, image: ImageRef) -> str | None:
        """The image's path, or the longest end of it, as the file has it; None without a caption."""
        path = os.path.relpath(image.path, image.root) if image.root else image.path
        parts = Path(path).as_posix().split("/")
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((end for end in ends if end in self.captions), None)


class ImageReplacement(NamedTuple):
    """The text that replaces an image: in which form, by which OCR reader, with captions from where."""

    how: Augmentation
    reader: Reader
    captions: CaptionFile | Captioner | None = None

    def spend_from(self, account: Account) -> None:
        if isinstance(self.captions, Captioner):
            self.captions.client.account = account

    @property
    def counts(self) -> Counts:
        return self.captions.client.counts if isinstance(self.captions, Captioner) else Counts()

    @property
    def notes(self) -> list[str]:
        return self.captions.client.notes if isinstance(self.captions, Captioner) else []

    @property
    def options(self) -> dict[str, Any]:
        return {"augment": self.how, "reader": self.reader.identity, "captioned_by": self._captioned_by()}

    @property
    def identity(self) -> str:
        """What the augmentation adds to the identity of the model."""
        captions = self.captions
        identity = f"with {self.how} by {self.reader.identity}"
        if isinstance(captions, Captioner):
            identity += f", captions by {captions.client.identity}"
        return identity + (f", captions {captions.digest}" if isinstance(captions, CaptionFile) else "")

    def _captioned_by(self) -> dict[str, Any] | None:
        if isinstance(self.captions, Captioner):
            return {**self.captions.client.description, "prompt": self.captions.prompt}
        if isinstance(self.captions, CaptionFile):
            return {"file": self.captions.path, "digest": self.captions.digest}
        return None


def image_replacement(spec: Spec, how: Augmentation, *, keyless: bool) -> ImageReplacement:
    if how != CAPTIONED:
        return ImageReplacement(how, RapidOcr())
    captions = _captioner(spec, keyless) if spec.captions is None else _caption_file(spec.captions)
    return ImageReplacement(how, RapidOcr(), captions)


def images_in_probes(
    benchmark: Benchmark, samples: Iterable[Sample], settings: Sequence[Mapping[str, Any]]
) -> dict[str, ImageRef]:
    return {
        part.path: part
        for sample in samples
        for options in settings
        for probe in benchmark.probes(sample, options)
        for message in probe.messages
        for part in message.parts
        if isinstance(part, ImageRef)
    }


def check_augmentation(replacement: ImageReplacement, model: Model, images: Mapping[str, ImageRef]) -> None:
    if model.capabilities.replays:
        raise UserError(
            f"--augment has no effect with {model.name}: it replays answers that exist already",
            expected="a model that receives requests, or no --augment",
        )
    if not images:
        raise UserError(
            "--augment replaces images by text, and this setting has none",
            expected="a setting with images",
        )
    if isinstance(replacement.captions, CaptionFile):
        _check_captions(replacement.captions, images)


def _check_captions(file: CaptionFile, images: Mapping[str, ImageRef]) -> None:
    """Raise UserError where the file has no caption of any image, or one name for two images."""
    paths: dict[str, str] = {}
    for path, image in images.items():
        name = file.name_of(image)
        if name is not None and paths.setdefault(name, path) != path:
            raise UserError(
                f"this name fits two images, {paths[name]} and {path}",
                file=file.path,
                record=name,
                expected="names with their folders",
            )
    if not paths:
        raise UserError(
            "the file contains no caption of any image of these probes",
            file=file.path,
            found=next(iter(file.captions), None),
            expected=f"a name such as {next(iter(images.values())).path}",
        )


def _captioner(spec: Spec, keyless: bool) -> Captioner:
    options = ClientOptions(
        model=spec.captioner or "",
        store=spec.store,
        concurrency=spec.concurrency,
        max_requests=spec.max_requests,
        max_cost=spec.max_cost,
        retry_errors=spec.retry_errors,
        config=spec.config,
        fingerprint=spec.fingerprint,
        accept_changed=spec.accept_changed,
        keyless=keyless,
    )
    client = ModelClient(options, SAMPLING)
    if not client.capabilities.images:
        raise UserError(f"--captioner {spec.captioner} does not accept images", expected="a model that does")
    return Captioner(client, again=spec.retry_errors)


def _caption_file(path: str) -> CaptionFile:
    captions = read_captions(path, needed=True)
    lines = {name: " ".join(text.split()) for name, text in captions.items()}
    digest = text_digest(repr(sorted(lines.items())))
    return CaptionFile(path, digest, {name: text for name, text in lines.items() if text})


# -- The texts that replace images: from the store or made now


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
    if isinstance(replacement.captions, Captioner):
        described = await replacement.captions.describe(readable, store, show_progress=show_progress)
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
    read: dict[str, OcrResult | None] = {
        digest: cached.get((digest, file.transform)) for digest, file in readable.items()
    }
    captions: dict[str, str | BadImage] = {}
    to_caption = 0
    if isinstance(replacement.captions, Captioner):
        captioner = replacement.captions
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
