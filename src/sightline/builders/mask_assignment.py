"""Reads the authors' label files types.json and labels.json: the maskings and the category of each image."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct

from sightline.builders.coco import CocoInstances
from sightline.builders.masking import VARIANTS, Colour, Lines, Masking, Shape
from sightline.decoding import json_records
from sightline.errors import UserError
from sightline.formats.content import read_bytes

LEFT_OUT = ("000000581719",)
"""The image that is in the authors' files (1,501 images) but not among the paper's 4,500 maskings: only
without it do the sub-groups have the sizes of Tables 11-13."""

T = TypeVar("T")


class MaskAssignment(Struct, frozen=True):
    """The maskings of each image (m0, m1, m2) and the category of its object, by COCO id.

    Two maskings of an image may be equal, as in 105 of the authors' 1,501 images. `left_out` holds the ids
    that were left out, `labels` the file of the categories.
    """

    maskings: Mapping[int, tuple[Masking, ...]]
    categories: Mapping[int, int]
    left_out: tuple[str, ...]
    labels: str

    def check_against(self, instances: CocoInstances, known: Collection[int]) -> None:
        """Check that the assignment fits an instances file."""
        if not known:
            raise UserError(
                f"none of the {len(self.maskings):,} images of the assignment is in the instances file",
                expected="COCO's instances of the split that the assignment was made from",
            )
        for number in known:
            if self.categories[number] not in instances.categories:
                raise UserError(
                    "is not a category of the instances file",
                    file=self.labels,
                    record=f"{number:012}",
                    found=self.categories[number],
                    expected=f"one of {len(instances.categories):,} ids such as {min(instances.categories)}",
                )

    def absent_from(self, instances: CocoInstances) -> dict[str, str]:
        """List the images of the assignment that an instances file lacks."""
        absent = sorted(self.maskings.keys() - instances.photos.keys())
        return {f"{number:012}": "not in the instances file" for number in absent}

    def sizes(self) -> dict[str, dict[str, int]]:
        """Count the maskings by colour, number of lines and shape (n in Tables 11-13)."""
        all_of_them = [one for maskings in self.maskings.values() for one in maskings]
        return {
            "colour": _counted((one.colour for one in all_of_them), Colour),
            "lines": _counted((one.lines for one in all_of_them), Lines),
            "shape": _counted((one.shape for one in all_of_them), Shape),
        }

    def with_equal(self) -> int:
        """Count the images with two equal maskings."""
        return sum(len(set(maskings)) < len(maskings) for maskings in self.maskings.values())


class _MaskingEntry(Struct, frozen=True):
    colors: Colour
    lines: Lines
    draw_type: Shape


def read_assignment(types: Path, labels: Path, leave_out: Sequence[str] = LEFT_OUT) -> MaskAssignment:
    """Read an assignment; both files have keys '<COCO id>_<0|1|2>'."""
    drawn = _by_image(_entries(types, _MaskingEntry), types)
    named = _by_image(_entries(labels, int), labels)
    for file, other, ids in ((labels, types, drawn.keys() - named), (types, labels, named.keys() - drawn)):
        if ids:
            raise UserError(f"lacks an image that {other.name} has", file=file, found=f"{min(ids):012}")
    for number, categories in named.items():
        if len(set(categories)) > 1:
            found = ", ".join(str(one) for one in categories)
            raise UserError(
                "has several categories for one object", file=labels, record=f"{number:012}", found=found
            )
    gone = {_number(name, drawn, types) for name in leave_out if name not in LEFT_OUT or int(name) in drawn}
    return MaskAssignment(
        maskings={
            number: tuple(Masking(one.colors, one.lines, one.draw_type) for one in entries)
            for number, entries in drawn.items()
            if number not in gone
        },
        categories={number: one for number, (one, *_) in named.items() if number not in gone},
        left_out=tuple(f"{number:012}" for number in sorted(gone)),
        labels=str(labels),
    )


def _entries(path: Path, kind: type[T]) -> dict[str, T]:
    """The entries of a JSON object by key; UserError for the first invalid one."""
    objects = [one for _, one in json_records(read_bytes(path), path)]
    if len(objects) != 1 or not objects[0]:
        expected = "one with keys such as 000000111548_0: a COCO id and 0, 1 or 2"
        raise UserError("is not a JSON object of maskings", file=path, expected=expected)
    entries: dict[str, T] = {}
    for key, value in objects[0].items():
        try:
            entries[key] = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise _invalid(error, path, key, value, kind) from None
    return entries


def _by_image(entries: Mapping[str, T], path: Path) -> dict[int, list[T]]:
    """The entries of each image, ordered by their numbers."""
    found: dict[int, dict[int, T]] = {}
    for key, entry in entries.items():
        form = re.fullmatch(r"([0-9]{1,18})_([0-9]+)", key)
        if not form or int(form[2]) >= len(VARIANTS):
            expected = "keys such as 000000111548_0: a COCO id and 0, 1 or 2"
            raise UserError("is not a key of a masking", file=path, record=key, expected=expected)
        found.setdefault(int(form[1]), {})[int(form[2])] = entry
    for number, numbered in found.items():
        if len(numbered) < len(VARIANTS):
            raise UserError(
                "lacks some of its maskings",
                file=path,
                record=f"{number:012}",
                found=", ".join(f"_{one}" for one in sorted(numbered)),
                expected="_0, _1 and _2",
            )
    return {number: [numbered[n] for n in sorted(numbered)] for number, numbered in found.items()}


def _number(name: str, known: Collection[int], path: Path) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", name) or int(name) not in known:
        raise UserError(
            "has no such image to leave out", file=path, found=name, expected="--leave-out with its COCO id"
        )
    return int(name)


def _counted(values: Iterable[Any], kind: Any) -> dict[str, int]:
    counts = Counter(values)
    return {str(value): counts[value] for value in get_args(kind)}


def _invalid(error: msgspec.ValidationError, path: Path, key: str, value: Any, kind: type[Any]) -> UserError:
    message, _, place = str(error).partition(" - at `$")
    missing = re.search(r"missing required field `([^`]+)`", message)
    field = missing[1] if missing else place.strip("`.")
    words = {"colors": Colour, "lines": Lines, "draw_type": Shape}
    expected = "a category's id" if kind is int else "colors, lines and draw_type"
    if field in words:
        expected = f"one of {', '.join(str(one) for one in get_args(words[field]))}"
    return UserError(
        message[0].lower() + message[1:],
        file=path,
        record=key,
        field=field or None,
        found=None if missing else value[field] if field else value,
        expected=expected,
    )
