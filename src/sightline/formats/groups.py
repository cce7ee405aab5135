"""The groups file: probes of any perturbation as plain lines, written by the builders and read by `run`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.errors import UserError
from sightline.formats.atomic_file import AtomicLineFile
from sightline.formats.files import read_lines
from sightline.types import Labels

ORIGINAL = "original"
"""The variant of the unperturbed probe; it is asked for Sampling alone, and counts in nothing else."""

_encoder = msgspec.json.Encoder()


class GroupLine(Struct, frozen=True, omit_defaults=True):
    """A probe: what is shown and asked, and what is known of it.

    `group` names the thing that all lines of the group are about, `variant` the light in which it is seen.
    `images` are paths relative to the folder of the file, `prompt` is the text that is sent behind them.
    `question` is what a judge is told was asked ('' for the prompt), `references` are answers any of which
    is right, `cluster` names what intervals resample ('' for the content of the first image). `facts`
    holds whatever else its maker wrote down (a box, a covered fraction).
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


def read_groups(path: Path) -> list[GroupLine]:
    """The lines of a groups file, in its order.

    UserError that names the file, the line and the field where one is wrong: no group, no variant, neither
    image nor prompt, or a variant that a group has twice.
    """
    lines = read_lines(path, GroupLine)
    if not lines:
        raise UserError("holds no group", file=path, expected="one JSON object a line")
    seen: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines, 1):
        _check(line, number, path)
        first = seen.setdefault((line.group, line.variant), number)
        if first != number:
            raise UserError(
                f"group '{line.group}' has variant '{line.variant}' on line {first} already",
                file=path,
                record=f"line {number}",
                field="variant",
                expected="each variant once in its group",
            )
    return lines


def write_groups(lines: Iterable[GroupLine], path: Path) -> None:
    """Write a groups file whole or not at all."""
    with AtomicLineFile(path) as file:
        for line in lines:
            file.write(_encoder.encode(line))


def by_group(lines: Iterable[GroupLine]) -> dict[str, list[GroupLine]]:
    """The lines of each group, groups and lines in the order in which they first appear."""
    groups: dict[str, list[GroupLine]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    return groups


def _check(line: GroupLine, number: int, path: Path) -> None:
    needed: Sequence[tuple[str, object, str]] = (
        ("group", line.group, "the group's id as text"),
        ("variant", line.variant, "the variant's name as text"),
        ("prompt", line.prompt or line.images, "a prompt, images, or both"),
    )
    for name, value, expected in needed:
        if not value:
            raise UserError("is empty", file=path, record=f"line {number}", field=name, expected=expected)
