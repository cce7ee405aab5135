"""Finds what training data and test data share: images, their pixels, their sources, and texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sightline.adapter.examples import line_images
from sightline.builders.image_io import open_upright
from sightline.builders.manifest import MANIFEST, read_manifest
from sightline.errors import UserError
from sightline.formats.group_file import read_groups
from sightline.images import BadImage
from sightline.types import ImageFile


class DataContent(Struct, frozen=True):
    """What a data set shows to a model."""

    images: Mapping[str, str]
    files: Mapping[str, ImageFile]
    texts: Mapping[str, str]
    prompts: frozenset[str]


def read_content(files: Sequence[Path]) -> DataContent:
    """Read what groups files show to a model, and the source images from which a builder made them."""
    records: dict[str, str] = {}
    images: dict[str, ImageFile] = {}
    texts: dict[str, str] = {}
    prompts: set[str] = set()
    inspected: dict[str, ImageFile] = {}
    for file in files:
        for line in read_groups(file):
            record = f"{line.group}/{line.variant}"
            of_line = line_images(line, file, inspected)
            for image in of_line.values():
                records.setdefault(image.digest, record)
                images.setdefault(image.digest, image)
            if of_line:
                prompts.add(_normalised(line.prompt))
            else:
                texts.setdefault(_normalised(line.prompt), record)
        for source, digest in source_digests(file.parent).items():
            records.setdefault(digest, source)
    return DataContent(records, images, texts, frozenset(prompts - {""}))


def refuse_overlap(training: DataContent, test: Sequence[Path]) -> list[str]:
    """Check that test data share no image, and no text without an image, with the training data.

    Images are equal if their files are, if a builder made them from equal files, or if their decoded pixels
    are equal: a copy in another lossless format or with other metadata is the same image. Texts are equal if
    they differ in case and white space only.
    """
    prompts: set[str] = set()
    pixels: dict[str, str] | None = None
    for file in test:
        content = read_content([file])
        for digest, record in content.images.items():
            if digest in training.images:
                raise _overlap("an image", training.images[digest], file, record)
        for text, record in content.texts.items():
            if text in training.texts:
                raise _overlap("a text", training.texts[text], file, record)
        candidates = dict(_of_sizes(content.files, training.files))
        if candidates and pixels is None:
            pixels = {}
            for digest in training.files:
                pixels.setdefault(_pixel_digest(training.files[digest]), training.images[digest])
        for digest, image in candidates.items():
            if pixels and (earlier := pixels.get(_pixel_digest(image))) is not None:
                raise _overlap("the pixels of an image", earlier, file, content.images[digest])
        prompts |= content.prompts
    shared = prompts & training.prompts
    # A test with one instruction for all its images, as in restyling, says nothing.
    if not shared or len(prompts) == 1:
        return []
    return [
        f"{len(shared):,} of the {len(prompts):,} different texts of the test occur in the training data too,"
        " with other images: the test does not show how the adapter answers unseen questions"
    ]


def source_digests(folder: Path) -> Mapping[str, str]:
    """Read from which images a builder made a folder.

    Only the manifest shows that two styles come from one image.
    """
    return read_manifest(folder).sources if (folder / MANIFEST).is_file() else {}


def _overlap(what: str, earlier: str, file: Path, record: str) -> UserError:
    return UserError(
        f"has {what} of the training data (record {earlier} there)",
        file=file,
        record=record,
        expected="images and texts that are not in the training data (`sightline build ... --apart-from`)",
    )


def _normalised(text: str) -> str:
    return " ".join(text.casefold().split())


def _of_sizes(
    images: Mapping[str, ImageFile], others: Mapping[str, ImageFile]
) -> Iterator[tuple[str, ImageFile]]:
    """The images with as many pixels as one of the others: only these are decoded."""
    areas = {image.width * image.height for image in others.values()}
    yield from ((digest, one) for digest, one in images.items() if one.width * one.height in areas)


def _pixel_digest(image: ImageFile) -> str:
    """The SHA-256 of the decoded pixels in RGB, upright; that of the file if it cannot be decoded."""
    try:
        rgb = open_upright(image.path)
    except BadImage:
        return image.digest
    return hashlib.sha256(f"{rgb.width}x{rgb.height} ".encode() + rgb.tobytes()).hexdigest()
