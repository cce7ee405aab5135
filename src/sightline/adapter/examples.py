"""What an adapter is trained on: groups of prompts with the answer that each should get."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from sightline.builders.manifest import MANIFEST, read_manifest
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, read_groups
from sightline.images import BadImage, look
from sightline.types import ImageFile, ImageRef, Request, user

ANSWER = 64
"""Tokens of an answer in validation."""

Without = Mapping[str, Collection[str]]
"""Labels and their values: lines that carry one of them are left out."""


class Example(NamedTuple):
    """A prompt, in `request`, the answer that it should get, and all that would be right."""

    request: Request
    answer: str
    references: tuple[str, ...]


Examples = list[list[Example]]
"""Groups of two examples at least."""


def read_examples(files: Sequence[Path], without: Without) -> Examples:
    """The variants of each group, but for the original, each with its first reference.

    Raises UserError where a file is wrong, a line has no reference or no image that can be read, a label
    of `without` occurs nowhere, or no group has two variants, by itself or after `without`.
    """
    groups: Examples = []
    known: dict[str, ImageFile] = {}
    met: set[tuple[str, str]] = set()
    several = False
    for file in files:
        for name, lines in by_group(read_groups(file)).items():
            met.update((label, str(value)) for line in lines for label, value in line.labels.items())
            variants = [line for line in lines if line.variant != ORIGINAL]
            kept = [line for line in variants if not _is_left_out(line, without)]
            several = several or len(variants) > 1
            if len(kept) > 1:
                groups.append([_example(line, file, f"{file} {name}", known) for line in kept])
    for label, values in without.items():
        for value in values:
            if (label, value) not in met:
                raise UserError(f"--without {label}={value}: no line has that label", file=files[0])
    if several and not groups:
        raise UserError("--without leaves no group two variants", file=files[0], expected="fewer of them")
    if not groups:
        raise UserError(
            "no group has two variants, so there is nothing to be consistent about",
            file=files[0],
            expected="what `sightline build rephrase`, `restyle` or `mask` makes",
        )
    return groups


def images_in(files: Sequence[Path]) -> dict[str, str]:
    """The digest of every image of these groups files and of what a builder made them from, each with the
    record that shows it. Raises UserError for an image that cannot be read."""
    found: dict[str, str] = {}
    known: dict[str, ImageFile] = {}
    for file in files:
        for line in read_groups(file):
            for image in _images(line, file, known).values():
                found.setdefault(image.digest, f"{line.group}/{line.variant}")
        for source, digest in sources_of(file.parent).items():
            found.setdefault(digest, source)
    return found


def refuse_overlap(trained: Mapping[str, str], test: Sequence[Path]) -> None:
    """Raise UserError where groups files for a test show an image of the training (`images_in`)."""
    for file in test:
        for digest, record in images_in([file]).items():
            if digest in trained:
                raise UserError(
                    f"shows an image of the training, there as {trained[digest]}",
                    file=file,
                    record=record,
                    expected="images that training does not show (`sightline build ... --apart-from`)",
                )


def sources_of(folder: Path) -> Mapping[str, str]:
    """The digests of the images that a builder's folder was made from, by their names: nothing else tells
    that two styles are of one image. Raises UserError for a manifest that is none of a builder."""
    return read_manifest(folder).sources if (folder / MANIFEST).is_file() else {}


def split(groups: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    """Groups for training and for validation, those that share an image on the same side."""
    clusters = _clusters(groups)
    Random(f"validation {seed}").shuffle(clusters)
    wanted = round(share * len(groups))
    held: Examples = []
    while len(held) < wanted and len(clusters) > 1:
        held += clusters.pop()
    return [group for cluster in clusters for group in cluster], held


def _clusters(groups: Examples) -> list[Examples]:
    """Groups that share an image, with each other or through others."""
    cluster_of: dict[str, Examples] = {}
    for group in groups:
        met = {id(cluster_of[shown]): cluster_of[shown] for shown in _shown(group) if shown in cluster_of}
        together = [*(one for cluster in met.values() for one in cluster), group]
        cluster_of |= dict.fromkeys((shown for one in together for shown in _shown(one)), together)
    return list({id(cluster): cluster for cluster in cluster_of.values()}.values())


def _shown(group: Sequence[Example]) -> list[str]:
    """The images of a group by their digests; a group without any is by itself."""
    digests = [file.digest for one in group for file in one.request.images.values()]
    return list(dict.fromkeys(digests)) or [group[0].request.key]


def _is_left_out(line: GroupLine, without: Without) -> bool:
    return any(str(line.labels.get(label)) in values for label, values in without.items())


def _example(line: GroupLine, file: Path, name: str, known: dict[str, ImageFile]) -> Example:
    if not line.references or not line.references[0].strip():
        raise UserError(
            "has no reference to be trained on",
            file=file,
            record=f"{line.group}/{line.variant}",
            field="references",
        )
    images = _images(line, file, known)
    shown = [ImageRef(path, str(file.parent)) for path in images]
    request = Request(
        key=f"{name} {line.variant}",
        messages=(user(*shown, *([line.prompt] if line.prompt else [])),),
        sampling={"max_tokens": ANSWER},
        images=images,
    )
    return Example(request, line.references[0].strip(), line.references)


def _images(line: GroupLine, file: Path, known: dict[str, ImageFile]) -> dict[str, ImageFile]:
    """The images of a line by their paths, looked at. Raises UserError for one that cannot be read."""
    found = {}
    for image in line.images:
        path = os.path.join(str(file.parent), image)
        try:
            found[path] = known[path] = look(ImageRef(path, str(file.parent)), known)
        except BadImage as error:
            raise UserError(
                f"an image cannot be used: {error}", file=file, record=f"{line.group}/{line.variant}"
            ) from None
    return found
