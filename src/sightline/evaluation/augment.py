"""Images told in words to a model that is not to see them: read, captioned, put in their place.

The augmented text-only models of ConTextual (Wadhawan et al. 2024, section 3.1), on any benchmark.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.captions import read_captions
from sightline.engine.captioning import SAMPLING, Captioner
from sightline.engine.client import ClientOptions, ModelClient
from sightline.engine.counts import Counts
from sightline.engine.image_cache import inspect_images
from sightline.engine.ocr_cache import OcrResult, cached_words, read_images
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.images import BadImage
from sightline.models.augmented import CAPTIONED, Augmented, InWords, text_of
from sightline.models.base import Model
from sightline.models.ocr import Reader
from sightline.models.replay import Replay
from sightline.plan.spec import Spec
from sightline.progress import progress
from sightline.types import Augmentation, ImageFile, ImageRef, Sample

CAPTIONS = f"--augment {CAPTIONED}"


class CaptionFile(NamedTuple):
    """Captions that are there already, by the names that `sightline build caption` gives images."""

    path: str
    digest: str
    captions: Mapping[str, str]

    def name_of(self, image: ImageRef) -> str | None:
        """The name under which the file holds an image: its path in the data folder, or the longest end of
        that; None where it holds no caption of it."""
        path = os.path.relpath(image.path, image.root) if image.root else image.path
        parts = Path(path).as_posix().split("/")
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((end for end in ends if end in self.captions), None)


class Captioning(NamedTuple):
    """A model that is asked for captions, and the budget and counts of asking it."""

    client: ModelClient
    captioner: Captioner


class Augment(NamedTuple):
    """How images are told: in which manner, read by whom, captioned by whom (where captions are told)."""

    how: Augmentation
    reader: Reader
    captions: CaptionFile | Captioning | None = None

    @property
    def counts(self) -> Counts:
        """What has happened in asking for captions."""
        return self.captions.client.counts if isinstance(self.captions, Captioning) else Counts()

    @property
    def options(self) -> dict[str, Any]:
        """The effective options, for a result."""
        return {"augment": self.how, "reader": self.reader.identity, "captioned_by": self._captioned_by()}

    @property
    def identity(self) -> str:
        """What is added to the identity of a model that is told of images so."""
        captions = self.captions
        said = f"with {self.how} by {self.reader.identity}"
        if isinstance(captions, Captioning):
            said += f", captions by {captions.client.identity}"
        return said + (f", captions {captions.digest}" if isinstance(captions, CaptionFile) else "")

    def _captioned_by(self) -> dict[str, Any] | None:
        if isinstance(self.captions, Captioning):
            return {**self.captions.client.description, "prompt": self.captions.captioner.prompt}
        if isinstance(self.captions, CaptionFile):
            return {"file": self.captions.path, "digest": self.captions.digest}
        return None


class Unknown(NamedTuple):
    """How many distinct images a run would read, and how many captions it would ask for."""

    to_read: int
    to_caption: int


def augment_of(spec: Spec, *, keyless: bool) -> Augment | None:
    """How the evaluation tells its images; None where the model is shown them.

    Raises UserError where the options do not fit each other, or the reader is not installed.
    """
    named = [option for option in ("captioner", "captions") if getattr(spec, option) is not None]
    if spec.augment is None or spec.augment != CAPTIONED:
        if named:
            raise UserError(
                f"--{named[0]} goes with {CAPTIONS} alone", expected=f"{CAPTIONS}, or no --{named[0]}"
            )
        return None if spec.augment is None else Augment(spec.augment, _reader())
    if len(named) != 1:
        raise UserError(
            f"{CAPTIONS} takes its captions from one place, not {' and '.join(named) or 'none'}",
            expected="--captioner MODEL, or --captions FILE that `sightline build caption` wrote",
        )
    captions = _captioning(spec, keyless) if spec.captions is None else _caption_file(spec.captions)
    return Augment(spec.augment, _reader(), captions)


def images_of(
    benchmark: Benchmark, samples: Iterable[Sample], settings: Sequence[Mapping[str, Any]]
) -> dict[str, ImageRef]:
    """Every image that is shown under any of these options, by its path."""
    return {
        part.path: part
        for sample in samples
        for options in settings
        for probe in benchmark.probes(sample, options)
        for message in probe.messages
        for part in message.parts
        if isinstance(part, ImageRef)
    }


def refuse_nothing_to_tell(augment: Augment, model: Model, images: Mapping[str, ImageRef]) -> None:
    """Raise UserError where there is no image to be told, nobody to be told it, or no caption of any."""
    if isinstance(model, Replay):
        raise UserError(
            f"--augment with {model.name}: its answers were given before, to whatever was asked then",
            expected="a model that is asked, or no --augment",
        )
    if not images:
        raise UserError(
            "--augment tells images in words, and this setting shows none", expected="another one"
        )
    if isinstance(augment.captions, CaptionFile):
        file = augment.captions
        found: dict[str, str] = {}
        for path, image in images.items():
            name = file.name_of(image)
            if name is not None and found.setdefault(name, path) != path:
                what = f"stands for two images, {found[name]} and {path}"
                expected = "names that hold the folders too"
                raise UserError(what, file=file.path, record=name, expected=expected)
        if not found:
            raise UserError(
                "holds no caption of any image that is shown",
                file=file.path,
                found=next(iter(file.captions), None),
                expected=f"a name such as {next(iter(images.values())).path}",
            )


async def in_words(
    augment: Augment, images: Mapping[str, ImageRef], store: Store, *, show_progress: bool
) -> Augmented:
    """The images in words: each is read, and a caption asked for, where that is not known.

    Raises UserError where reader or captioner cannot be used at all, EnvironmentFailedError where the store fails.
    Cancelled, it keeps everything read and answered so far.
    """
    files = inspect_images(images, store, records=True)
    good = [file for file in files.values() if isinstance(file, ImageFile)]
    read = await _read(good, augment.reader, store, show_progress=show_progress)
    said: dict[str, str | BadImage] = {}
    if isinstance(augment.captions, Captioning):
        found = await augment.captions.captioner.describe(good, store, show_progress=show_progress)
        said = {
            digest: one.text or BadImage(f"has no caption: {one.missing}") for digest, one in found.items()
        }
    return _augmented(augment, images, files, read, said)


def known_in_words(
    augment: Augment, images: Mapping[str, ImageRef], store: Store
) -> tuple[Augmented, Unknown]:
    """The images in words as far as the store knows them, with a stand-in for what it does not; nothing is
    read, asked or written."""
    files = inspect_images(images, store, records=False)
    good = {file.digest: file for file in files.values() if isinstance(file, ImageFile)}
    known = cached_words(good.values(), augment.reader, store)
    read: dict[str, OcrResult | None] = {digest: known.get((digest, "")) for digest in good}
    said: dict[str, str | BadImage] = {}
    if isinstance(augment.captions, Captioning):
        found = augment.captions.captioner.known(good.values(), store)
        said = {digest: one.text or f"(a caption of {digest})" for digest, one in found.items()}
    unknown = Unknown(
        sum(words is None for words in read.values()),
        augment.captions.captioner.estimate(good.values(), store).to_ask
        if isinstance(augment.captions, Captioning)
        else 0,
    )
    return _augmented(augment, images, files, read, said), unknown


async def _read(
    files: Sequence[ImageFile], reader: Reader, store: Store, *, show_progress: bool
) -> dict[str, OcrResult | None]:
    """What stands in each image by its digest, read in a thread: Ctrl-C waits for one image at most."""
    found: dict[str, OcrResult | None] = {}
    steps = read_images(files, reader, store)
    distinct = len({file.digest for file in files})
    with progress("reading images", distinct, "images", show_progress=show_progress) as advance:
        while (step := await asyncio.to_thread(lambda: next(steps, None))) is not None:
            (digest, _), words = step
            found[digest] = words
            advance(1)
    return found


def _augmented(
    augment: Augment,
    images: Mapping[str, ImageRef],
    files: Mapping[str, ImageFile | BadImage],
    read: Mapping[str, OcrResult | None],
    said: Mapping[str, str | BadImage],
) -> Augmented:
    """Every image in words by its path, or why it cannot be told; `read` and `said` go by digest."""
    told: dict[str, InWords | BadImage] = {}
    for path, file in files.items():
        if isinstance(file, BadImage):
            told[path] = file
            continue
        words, caption = read[file.digest], said.get(file.digest, "")
        if isinstance(augment.captions, CaptionFile):
            name = augment.captions.name_of(images[path])
            missing = BadImage(f"has no caption in {augment.captions.path}")
            caption = missing if name is None else augment.captions.captions[name]
        if isinstance(words, BadImage):
            told[path] = words
        elif isinstance(caption, BadImage):
            told[path] = BadImage(f"{path}: {caption}")
        else:
            text = f"(the text in {file.digest})" if words is None else text_of(words, augment.how)
            told[path] = InWords(text, caption)
    return Augmented(augment.how, told)


def _reader() -> Reader:
    from sightline.models.rapid_ocr import RapidOcr

    return RapidOcr()


def _captioning(spec: Spec, keyless: bool) -> Captioning:
    asking = ClientOptions(
        model=spec.captioner or "",
        store=spec.store,
        concurrency=spec.concurrency,
        max_requests=spec.max_requests,
        max_cost=spec.max_cost,
        retry_errors=spec.retry_errors,
        config=spec.config,
        keyless=keyless,
    )
    client = ModelClient(asking, SAMPLING)
    if not client.capabilities.images:
        raise UserError(f"--captioner {spec.captioner} takes no images", expected="a model that does")
    return Captioning(client, Captioner(client, again=spec.retry_errors))


def _caption_file(path: str) -> CaptionFile:
    captions = read_captions(path, needed=True)
    lines = {name: " ".join(text.split()) for name, text in captions.items()}
    digest = hashlib.sha256(repr(sorted(lines.items())).encode()).hexdigest()
    return CaptionFile(path, digest, {name: text for name, text in lines.items() if text})
