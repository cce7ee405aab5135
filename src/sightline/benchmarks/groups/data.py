"""Samples and probes from a groups file, or from the answers to one that say what was asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sightline.errors import UserError
from sightline.formats.files import json_records, read_bytes
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, read_groups
from sightline.formats.jsonl import id_field
from sightline.formats.tables import read_table, table_rows
from sightline.types import ImageRef, Probe, Sample, user

GROUPS = "groups.jsonl"
"""The groups file in a builder's folder."""

_BUILDERS = {"rephrasing": "rephrase", "restyling": "restyle", "context": "mask"}

SAMPLING_DRAWS = 4
"""How often the unchanged input is asked (MM-R3 4.2)."""


def task_file(folder: Path | None, task: str) -> Path:
    """The groups file of a task in a data folder: in its subfolder of that name, or in itself.

    Raises UserError where there is none, or it was built for another task.
    """
    if folder is None:
        raise UserError(
            f"no data folder for mmr3:{task}",
            expected=f"--data DIR or SIGHTLINE_DATA with what `sightline build {_BUILDERS[task]}` made",
        )
    for place in (folder / task, folder / "mmr3" / task, folder):
        if (place / GROUPS).is_file():
            _refuse_other_task(place, task)
            return place / GROUPS
    if not folder.is_dir():
        raise UserError("this data folder does not exist", file=folder, expected=f"a folder with {GROUPS}")
    raise UserError(
        f"{GROUPS} is neither in this folder nor in its subfolder {task}",
        file=folder,
        expected=f"what `sightline build {_BUILDERS[task]} --out {folder / task}` makes",
    )


class Chosen(Struct, frozen=True):
    """Which lines of a groups file are asked.

    `size` keeps those with that label `size`; without it, `one_size` keeps the images' own size, else the
    only one that a builder made. For `unchanged` and `each` see `asked`. Where `likeliest`, a line with
    options is answered by the one that the model finds likeliest.
    """

    size: int | None = None
    one_size: bool = False
    unchanged: bool = False
    each: bool = False
    likeliest: bool = False


def read_samples(file: Path, chosen: Chosen) -> list[Sample]:
    """A sample a group, its `record` all of its lines; groups of which nothing is asked are left out.

    Raises UserError where the file or a line is wrong, or nothing is left.
    """
    return _samples(_of_size(read_groups(file), chosen, file), file, str(file.parent), chosen)


def answered_samples(file: Path, chosen: Chosen) -> list[Sample]:
    """The samples that a file of answers says were asked: lines with group, variant, references, labels.

    Raises UserError where a line is wrong.
    """
    return _samples(_of_size(_answered_lines(file), chosen, file), file, "", chosen)


def probes_of(sample: Sample, chosen: Chosen) -> Iterator[Probe]:
    """The probes of a sample in the order of its lines; those asked unchanged share their draws."""
    root = sample.images[0].root if sample.images else ""
    for line in asked(sample.record, chosen):
        images = [ImageRef(os.path.join(root, image), root) for image in line.images]
        yield Probe(
            sample=sample.id,
            variant=line.variant,
            messages=(user(*images, *([line.prompt] if line.prompt else [])),),
            question=line.question or line.prompt,
            references=tuple(reference for reference in line.references if reference.strip()),
            options=line.options,
            labels=line.labels,
            draws=SAMPLING_DRAWS if chosen.unchanged else 0,
            choices=line.options if chosen.likeliest else (),
        )


def asked(lines: Sequence[GroupLine], chosen: Chosen) -> list[GroupLine]:
    """The lines of a group that are asked: all but the original; where `unchanged`, the original alone.

    What is unchanged where it is `each` is every line but the original: the masked images of context
    reasoning, of which the paper's Sampling is made.
    """
    original = chosen.unchanged and not chosen.each
    return [line for line in lines if (line.variant == ORIGINAL) == original]


def _refuse_other_task(folder: Path, task: str) -> None:
    """Raise UserError where the manifest beside the groups file names the builder of another task."""
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return
    try:
        kind = msgspec.json.decode(manifest.read_bytes(), type=_Built).kind
    except (OSError, msgspec.DecodeError):
        return
    if kind in _BUILDERS.values() and kind != _BUILDERS[task]:
        raise UserError(
            f"was made by `sightline build {kind}`",
            file=folder,
            expected=f"what `sightline build {_BUILDERS[task]}` makes, for mmr3:{task}",
        )


class _Built(Struct):
    """What a builder's manifest says of its kind."""

    kind: str


def _samples(lines: Sequence[GroupLine], file: Path, root: str, chosen: Chosen) -> list[Sample]:
    groups = by_group(lines)
    samples = [_sample(name, members, root) for name, members in groups.items() if asked(members, chosen)]
    if not samples and chosen.unchanged and not chosen.each:
        raise UserError(
            f"no group has a line with variant '{ORIGINAL}'",
            file=file,
            expected="the unchanged input as a line of each group",
        )
    if not samples:
        raise UserError(
            "no group has a perturbed line", file=file, expected="lines of other variants, or --unchanged"
        )
    return samples


def _sample(name: str, lines: Sequence[GroupLine], root: str) -> Sample:
    first = lines[0]
    return Sample(
        id=name,
        question=first.question or first.prompt,
        images=tuple(ImageRef(os.path.join(root, image), root) for line in lines for image in line.images),
        references=first.references,
        labels=first.labels,
        cluster=first.cluster or None,
        record=tuple(lines),
    )


def _of_size(lines: Sequence[GroupLine], chosen: Chosen, file: Path) -> list[GroupLine]:
    if chosen.size is None and not chosen.one_size:
        return list(lines)
    sizes = list(dict.fromkeys(map(_size, lines)))
    wanted = str(chosen.size) if chosen.size is not None else ORIGINAL if ORIGINAL in sizes else sizes[0]
    several = chosen.size is None and ORIGINAL not in sizes and len(sizes) > 1
    if several or wanted not in sizes:
        named = ", ".join(size for size in sizes if size != ORIGINAL)
        raise UserError(
            "holds images of several sizes" if several else f"holds no images of size {wanted}",
            file=file,
            expected=f"--set size=S with S one of {named}" if named else "no --set size: none was built",
        )
    return [line for line in lines if _size(line) == wanted]


def _size(line: GroupLine) -> str:
    """The size that a builder made a line's image in."""
    return str(line.labels.get("size", ORIGINAL))


def _answered_lines(file: Path) -> list[GroupLine]:
    """What the answers in a file say was asked; the first line of several draws stands for all."""
    content = read_bytes(file)
    is_json = content.lstrip()[:1] in (b"{", b"[")
    rows = json_records(content, file) if is_json else table_rows(read_table(content, file), file)
    found: dict[tuple[str, str], GroupLine] = {}
    for where, record in rows:
        line = _answered_line(record, where, file)
        found.setdefault((line.group, line.variant), line)
    return list(found.values())


def _answered_line(record: Mapping[str, Any], where: str, file: Path) -> GroupLine:
    named = id_field(record)
    if named is None:
        raise UserError("names no group", file=file, record=where, field="group", expected="its id as text")
    fields = ("variant", "question", "references", "options", "labels", "cluster")
    given = {name: record[name] for name in fields if record.get(name) is not None}
    try:
        return msgspec.convert({"variant": "", **given, "group": str(record[named])}, GroupLine)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        field = place.strip("`.") or None
        expected = "as in answers.jsonl: lists of texts for references and options, an object for labels"
        raise UserError(text, file=file, record=where, field=field, expected=expected) from None
