"""Pairs of an original and a variant in a built folder: read and drawn."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from sightline.builders.manifest import MANIFEST, read_manifest
from sightline.errors import UserError
from sightline.formats.digests import file_digest, json_digest
from sightline.formats.group_file import read_groups
from sightline.formats.groups import ORIGINAL, GroupLine, by_group

QUESTION = "equivalent"
"""The question of verdicts on pairs: `right` means the same, `wrong` means different."""


class VariantPair(Struct, frozen=True):
    """An original and one of its variants, with what differs between them: texts, or paths of images.

    `targets` are digests of group, variant and content of the two, so that a verdict does not apply to a pair
    that changed.
    """

    targets: tuple[str, str]
    group: str
    variant: str
    kind: Literal["text", "image"]
    first: str
    second: str
    cluster: str


def read_pairs(folder: Path) -> list[VariantPair]:
    """Read the pairs of original and variant in a built folder."""
    path = folder / "groups.jsonl"
    if not path.is_file():
        raise UserError("contains no groups.jsonl", file=folder, expected="a folder of `sightline build`")
    pairs: list[VariantPair] = []
    digests: dict[str, str] = {}
    for name, lines in by_group(read_groups(path)).items():
        original = next((line for line in lines if line.variant == ORIGINAL), None)
        if original is None:
            expected = f"a line with variant '{ORIGINAL}' in each group"
            raise UserError("has no original to compare with", file=path, record=name, expected=expected)
        pairs += [_pair(original, line, folder, digests) for line in lines if line is not original]
    if not pairs:
        raise UserError("holds originals alone", file=path, expected="at least one variant")
    return pairs


def draw_pairs(pairs: Sequence[VariantPair], count: int, seed: int) -> list[VariantPair]:
    """Draw pairs, at most one per group."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for place, pair in enumerate(pairs):
        by_name[pair.group].append(place)
    draw = random.Random(f"{QUESTION} {seed}")
    names = draw.sample(list(by_name), min(count, len(by_name)))
    return [pairs[place] for place in sorted(draw.choice(by_name[name]) for name in names)]


def kind_of_folder(folder: Path) -> str:
    """The kind of builder that made a folder."""
    return read_manifest(folder).kind if (folder / MANIFEST).is_file() else ""


def _pair(original: GroupLine, line: GroupLine, folder: Path, digests: dict[str, str]) -> VariantPair:
    texts = (original.question or original.prompt, line.question or line.prompt)
    kind: Literal["text", "image"] = "text" if texts[0] != texts[1] else "image"
    if kind == "image" and original.images == line.images:
        raise UserError(
            f"variant '{line.variant}' differs from the original in neither question nor image",
            file=folder / "groups.jsonl",
            record=line.group,
            expected="a perturbation",
        )
    shown = texts if kind == "text" else (_images(original, folder), _images(line, folder))
    targets = tuple(
        json_digest(
            [one.group, one.variant, text, [_digest(folder / image, digests) for image in one.images]]
        )
        for one, text in zip((original, line), texts, strict=True)
    )
    cluster = original.cluster or "".join(_digest(folder / image, digests) for image in original.images)
    return VariantPair(
        (targets[0], targets[1]), line.group, line.variant, kind, *shown, cluster=cluster or line.group
    )


def _images(line: GroupLine, folder: Path) -> str:
    return ", ".join(str(folder / image) for image in line.images)


def _digest(path: Path, digests: dict[str, str]) -> str:
    name = str(path)
    if name not in digests:
        try:
            digests[name] = file_digest(path)
        except OSError as error:
            raise UserError(
                f"cannot be read: {error.strerror or error}",
                file=path,
                expected="the image as it was built",
            ) from None
    return digests[name]
