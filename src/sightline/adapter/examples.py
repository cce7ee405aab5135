"""Reads training examples from groups files: prompts with the answer that each should get."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from sightline.errors import UserError
from sightline.formats.group_file import read_groups
from sightline.formats.groups import ORIGINAL, GroupLine, by_group
from sightline.images import BadImage, inspect_image
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
