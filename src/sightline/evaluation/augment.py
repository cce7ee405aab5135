"""Augmentation: OCR text and captions that replace images for a model that gets text only.

The augmented text-only models of ConTextual (Wadhawan et al. 2024, section 3.1), on any benchmark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.captions import read_captions
from sightline.engine.account import Account
from sightline.engine.captioning import SAMPLING, Captioner
from sightline.engine.client import ClientOptions, ModelClient
from sightline.engine.counts import Counts
from sightline.errors import UserError
from sightline.formats.digests import text_digest
from sightline.models.augmented import CAPTIONED
from sightline.models.base import Model
from sightline.models.ocr import Reader
from sightline.plan.spec import Spec
from sightline.types import Augmentation, ImageRef, Sample

CAPTIONS = f"--augment {CAPTIONED}"


class CaptionFile(NamedTuple):
    """Captions from a file, by the image names that `sightline build caption` writes."""

    path: str
    digest: str
    captions: Mapping[str, str]

    def name_of(self, image: ImageRef) -> str | None:
        """The name under which the file holds the caption of an image.

        Returns:
            Its path in the data folder, or the longest end of that path that the file holds; None if the file
            holds no caption of it.
        """
        path = os.path.relpath(image.path, image.root) if image.root else image.path
        parts = Path(path).as_posix().split("/")
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((end for end in ends if end in self.captions), None)


class CaptionModel(NamedTuple):
    """A model that writes captions, and the client that calls it and counts the calls."""

    client: ModelClient
    captioner: Captioner


class ImageReplacement(NamedTuple):
    """The text that replaces an image: in which form, by which OCR reader, with captions from where."""

    how: Augmentation
    reader: Reader
    captions: CaptionFile | CaptionModel | None = None

    def spend_from(self, account: Account) -> None:
        """Let the captioner spend from the budget of a run."""
        if isinstance(self.captions, CaptionModel):
            self.captions.client.account = account

    @property
    def counts(self) -> Counts:
        """The requests for captions."""
        return self.captions.client.counts if isinstance(self.captions, CaptionModel) else Counts()

    @property
    def notes(self) -> list[str]:
        """What the check of the captioner's endpoint found."""
        return self.captions.client.notes if isinstance(self.captions, CaptionModel) else []

    @property
    def options(self) -> dict[str, Any]:
        """The effective options, for a result."""
        return {"augment": self.how, "reader": self.reader.identity, "captioned_by": self._captioned_by()}

    @property
    def identity(self) -> str:
        """What the augmentation adds to the identity of the model."""
        captions = self.captions
        identity = f"with {self.how} by {self.reader.identity}"
        if isinstance(captions, CaptionModel):
            identity += f", captions by {captions.client.identity}"
        return identity + (f", captions {captions.digest}" if isinstance(captions, CaptionFile) else "")

    def _captioned_by(self) -> dict[str, Any] | None:
        if isinstance(self.captions, CaptionModel):
            return {**self.captions.client.description, "prompt": self.captions.captioner.prompt}
        if isinstance(self.captions, CaptionFile):
            return {"file": self.captions.path, "digest": self.captions.digest}
        return None


def image_replacement(spec: Spec, *, keyless: bool) -> ImageReplacement | None:
    """The augmentation that an evaluation asks for.

    Returns:
        The augmentation; None if the model sees the images.
    """
    sources = [option for option in ("captioner", "captions") if getattr(spec, option) is not None]
    if spec.augment is None or spec.augment != CAPTIONED:
        if sources:
            raise UserError(
                f"--{sources[0]} has an effect with {CAPTIONS} only",
                expected=f"{CAPTIONS}, or no --{sources[0]}",
            )
        return None if spec.augment is None else ImageReplacement(spec.augment, _reader())
    if len(sources) != 1:
        raise UserError(
            f"{CAPTIONS} needs one source of captions, found {' and '.join(sources) or 'none'}",
            expected="--captioner MODEL, or --captions FILE from `sightline build caption`",
        )
    captions = _caption_model(spec, keyless) if spec.captions is None else _caption_file(spec.captions)
    return ImageReplacement(spec.augment, _reader(), captions)


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
    """Check that the augmentation has an effect."""
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


def _reader() -> Reader:
    from sightline.models.rapid_ocr import RapidOcr

    return RapidOcr()


def _caption_model(spec: Spec, keyless: bool) -> CaptionModel:
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
    return CaptionModel(client, Captioner(client, again=spec.retry_errors))


def _caption_file(path: str) -> CaptionFile:
    captions = read_captions(path, needed=True)
    lines = {name: " ".join(text.split()) for name, text in captions.items()}
    digest = text_digest(repr(sorted(lines.items())))
    return CaptionFile(path, digest, {name: text for name, text in lines.items() if text})
