"""Reads training examples from groups files, and finds what training data and test data share."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from msgspec import Struct

from sightline.builders.folder import MANIFEST, open_upright, read_manifest
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, read_groups
from sightline.images import BadImage, inspect_image
from sightline.scoring.text import in_one_spelling
from sightline.types import ImageFile, ImageRef, Request, user

VALIDATION_TOKENS = 64
"""The most tokens that the model generates for an answer in validation."""

ExcludedLabels = Mapping[str, Collection[str]]
"""Labels with values: lines that carry one of them are not used."""


class TrainingExample(NamedTuple):
    """A prompt (`request`), the answer to learn, and all answers that count as right in validation."""

    request: Request
    answer: str
    references: tuple[str, ...]


ExampleGroups = list[list[TrainingExample]]
"""Groups of at least two examples."""


def read_examples(files: Sequence[Path], without: ExcludedLabels) -> ExampleGroups:
    """Read the variants of each group, except the original, with the first reference as the answer."""
    groups: ExampleGroups = []
    inspected: dict[str, ImageFile] = {}
    labels: set[tuple[str, str]] = set()
    has_variants = False
    for file in files:
        for name, lines in by_group(read_groups(file)).items():
            labels.update((label, str(value)) for line in lines for label, value in line.labels.items())
            variants = [line for line in lines if line.variant != ORIGINAL]
            used = [line for line in variants if not _is_excluded(line, without)]
            has_variants = has_variants or len(variants) > 1
            if len(used) > 1:
                groups.append([_example(line, file, f"{file} {name}", inspected) for line in used])
    for label, values in without.items():
        for value in values:
            if (label, value) not in labels:
                raise UserError(f"--without {label}={value}: no line has that label", file=files[0])
    if has_variants and not groups:
        raise UserError(
            "--without leaves no group with two variants", file=files[0], expected="fewer --without"
        )
    if not groups:
        raise UserError(
            "no group has two variants, so consistency cannot be trained",
            file=files[0],
            expected="a folder of `sightline build rephrase`, `restyle` or `mask`",
        )
    return groups


def split(groups: ExampleGroups, share: float, seed: int) -> tuple[ExampleGroups, ExampleGroups]:
    """Split groups into a training set and a held-out set for validation.

    Groups that share an image, directly or through other groups, stay on the same side.

    Args:
        share: The share of groups to hold out, 0 to 1.
    """
    clusters = _clusters(groups)
    Random(f"validation {seed}").shuffle(clusters)
    count = round(share * len(groups))
    held_out: ExampleGroups = []
    while len(held_out) < count and len(clusters) > 1:
        held_out += clusters.pop()
    return [group for cluster in clusters for group in cluster], held_out


def _clusters(groups: ExampleGroups) -> list[ExampleGroups]:
    """Groups that share an image, directly or through other groups."""
    cluster_of: dict[str, ExampleGroups] = {}
    for group in groups:
        images = _digests(group)
        touched = {id(cluster_of[image]): cluster_of[image] for image in images if image in cluster_of}
        merged = [*(member for cluster in touched.values() for member in cluster), group]
        cluster_of |= dict.fromkeys((image for member in merged for image in _digests(member)), merged)
    return list({id(cluster): cluster for cluster in cluster_of.values()}.values())


def _digests(group: Sequence[TrainingExample]) -> list[str]:
    """The digests of a group's images; a group without images forms a cluster of its own."""
    digests = [file.digest for example in group for file in example.request.images.values()]
    return list(dict.fromkeys(digests)) or [group[0].request.key]


def _is_excluded(line: GroupLine, without: ExcludedLabels) -> bool:
    return any(str(line.labels.get(label)) in values for label, values in without.items())


def _example(line: GroupLine, file: Path, name: str, inspected: dict[str, ImageFile]) -> TrainingExample:
    if not line.references or not line.references[0].strip():
        raise UserError(
            "has no reference to learn",
            file=file,
            record=f"{line.group}/{line.variant}",
            field="references",
        )
    images = line_images(line, file, inspected)
    parts = [ImageRef(path, str(file.parent)) for path in images]
    request = Request(
        key=f"{name} {line.variant}",
        messages=(user(*parts, *([line.prompt] if line.prompt else [])),),
        sampling={"max_tokens": VALIDATION_TOKENS},
        images=images,
    )
    return TrainingExample(request, line.references[0].strip(), line.references)


def line_images(line: GroupLine, file: Path, inspected: dict[str, ImageFile]) -> dict[str, ImageFile]:
    images = {}
    for image in line.images:
        path = os.path.join(str(file.parent), image)
        try:
            images[path] = inspected[path] = inspect_image(ImageRef(path, str(file.parent)), inspected)
        except BadImage as error:
            raise UserError(
                f"an image cannot be used: {error}", file=file, record=f"{line.group}/{line.variant}"
            ) from None
    return images


# -- Finds what training data and test data share: images, their pixels, their sources, and texts


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
                prompts.add(in_one_spelling(line.prompt))
            else:
                texts.setdefault(in_one_spelling(line.prompt), record)
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
    """Read which images a folder was made from: only its manifest shows that two styles have one source."""
    return read_manifest(folder).sources if (folder / MANIFEST).is_file() else {}


def _overlap(what: str, earlier: str, file: Path, record: str) -> UserError:
    return UserError(
        f"has {what} of the training data (record {earlier} there)",
        file=file,
        record=record,
        expected="images and texts that are not in the training data (`sightline build ... --apart-from`)",
    )


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
