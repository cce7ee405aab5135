"""The groups file: probes of any perturbation as lines, written by builders and read by `run`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.errors import UserError
from sightline.formats.atomic_file import AtomicLineFile
from sightline.formats.image_paths import is_below
from sightline.scoring.letters import LETTERS
from sightline.types import Labels

ORIGINAL = "original"
"""The variant of the unperturbed probe; it is sent for Sampling only, and counts in nothing else."""

_encoder = msgspec.json.Encoder()


class GroupLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A probe.

    `group` names the thing that all lines of the group are about, `variant` the perturbation. `images` are
    paths relative to the folder of the file; `prompt` is the text sent after them. `question` is the question
    that a judge gets ('' for the prompt). Any of the `references` is right. `cluster` names the independent
    unit of confidence intervals ('' for the content of the first image). `facts` holds further data of the
    builder (a box, a covered fraction).
    """

    group: str
    variant: str
    images: tuple[str, ...] = ()
    prompt: str = ""
    question: str = ""
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    cluster: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def write_groups(lines: Iterable[GroupLine], path: Path) -> None:
    """Write a groups file atomically."""
    with AtomicLineFile(path) as file:
        for line in lines:
            file.write(_encoder.encode(line))


def by_group(lines: Iterable[GroupLine]) -> dict[str, list[GroupLine]]:
    groups: dict[str, list[GroupLine]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    return groups


def check_line(line: GroupLine, number: int, path: Path) -> None:
    """Check a line by itself."""
    if line.group and line.variant and (line.prompt or line.images):
        _check_images(line, number, path)
        _check_options(line, number, path)
        return
    needed: Sequence[tuple[str, object, str]] = (
        ("group", line.group, "the group's id as text"),
        ("variant", line.variant, "the variant's name as text"),
        ("prompt", line.prompt or line.images, "a prompt, images, or both"),
    )
    for name, value, expected in needed:
        if not value:
            raise UserError("is empty", file=path, record=f"line {number}", field=name, expected=expected)


def repeated_variant(line: GroupLine, first: int, second: int, path: Path) -> UserError:
    return UserError(
        f"group '{line.group}' has variant '{line.variant}' on line {first} already",
        file=path,
        record=f"line {second}",
        field="variant",
        expected="each variant once in its group",
    )


def _check_images(line: GroupLine, number: int, path: Path) -> None:
    """Raise UserError unless all images are below the folder of the file."""
    for index, image in enumerate(line.images):
        if not is_below(image):
            raise UserError(
                "is outside the folder of the groups file",
                file=path,
                record=f"line {number}",
                field=f"images[{index}]",
                found=image,
                expected="a path inside that folder, relative to it; the file stands above its images",
            )


def _check_options(line: GroupLine, number: int, path: Path) -> None:
    """Raise UserError unless the options differ and every reference names one of them."""
    if not line.options:
        return
    record, texts = f"line {number}", [option.strip().casefold() for option in line.options]
    if len(set(texts)) < len(texts):
        raise UserError("has an option twice", file=path, record=record, field="options", found=line.options)
    letters = tuple(LETTERS[: len(texts)])
    for reference in map(str.strip, line.references):
        if reference not in letters and reference.casefold() not in texts:
            raise UserError(
                "has a reference that is not an option",
                file=path,
                record=record,
                field="references",
                found=reference,
                expected=f"the text of an option, or a letter from {letters[0]} to {letters[-1]}",
            )
