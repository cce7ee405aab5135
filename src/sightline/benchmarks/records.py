"""Reads and checks released JSON records and captions; an error names file, record and field."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sightline.errors import UserError, did_you_mean
from sightline.formats.files import read_bytes
from sightline.images import BadImage, inspect_image
from sightline.text import UNDECODABLE, fault, json_records
from sightline.types import ImageFile, ImageRef, Probe, Sample

Record = TypeVar("Record")

_MISSING = re.compile(r"missing required field `([^`]+)`")


def read_records(path: Path, kind: type[Record], *, name: str) -> list[Record]:
    """Read a JSON list or JSON Lines."""
    content = read_bytes(path)
    try:
        if content.lstrip().startswith(b"["):
            return msgspec.json.decode(content, type=list[kind])  # type: ignore[valid-type]
        return msgspec.json.Decoder(kind).decode_lines(content)
    except UNDECODABLE as error:
        for where, record in json_records(content, path):
            _check(path, where, record, kind, name)
        # Of a field that a record has twice, the last value counts above.
        raise UserError(f"is not in the released layout ({fault(error)})", file=path) from None


def refuse_repeated_ids(path: Path, ids: Sequence[str]) -> None:
    seen: dict[str, int] = {}
    for number, name in enumerate(ids):
        if name in seen:
            raise UserError(
                "this id occurs twice",
                file=path,
                record=name,
                field="id",
                found=f"records {seen[name] + 1} and {number + 1} of the file",
                expected="each id once",
            )
        seen[name] = number


def data_folder(folder: Path | None, benchmark: str, file: str) -> Path:
    """Find the folder that holds a file: the user's data folder, or its subfolder named after the benchmark.

    `folder`: the user's data folder, or None.
    """
    if folder is None:
        raise UserError(
            f"no data folder for {benchmark}",
            expected=f"--data DIR or SIGHTLINE_DATA with {file}, or `sightline data pull {benchmark}`",
        )
    for candidate in (folder, folder / benchmark):
        if (candidate / file).is_file():
            return candidate
    if not folder.is_dir():
        raise UserError("this data folder does not exist", file=folder, expected=f"a folder with {file}")
    raise UserError(f"{file} is not in this folder", file=folder, expected=f"the layout of {benchmark}")


def _check(path: Path, where: str, record: dict[str, Any], kind: type[Any], name: str) -> None:
    """Raise UserError if a record does not fit its struct; it names the record, the field and the fault."""
    try:
        msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        message, _, position = str(error).partition(" - at `$")
        missing = _MISSING.search(message)
        inside = position.strip("`.")
        field = ".".join(part for part in (inside, missing.group(1) if missing else "") if part)
        named = record.get(name)
        raise UserError(
            message[0].lower() + message[1:],
            file=path,
            record=named if isinstance(named, str) else where,
            field=field or None,
            expected="the released layout",
        ) from None


# -- Image captions from a file, which a setting sends instead of the images


def read_captions(file: str | None, needed: bool) -> dict[str, str]:
    """Read captions: a JSON object {image id: caption}, or records of image_id and caption.

    `file`: the file, or None if the user named none.
    """
    if not needed:
        return {}
    if file is None:
        raise UserError(
            "the setting sends captions instead of images and has none",
            expected="--set captions=FILE, which `sightline build caption` writes",
        )
    path = Path(file)
    rows = json_records(read_bytes(path), path)
    if len(rows) == 1 and "caption" not in rows[0][1]:
        pairs = [(name, _text(rows[0][1], name, path, name)) for name in rows[0][1]]
    else:
        pairs = [
            (_text(row, "image_id", path, where), _text(row, "caption", path, where)) for where, row in rows
        ]
    refuse_repeated_ids(path, [name for name, _ in pairs])
    return dict(pairs)


def _text(record: Mapping[str, Any], name: str, path: Path, where: str) -> str:
    """A field of a record; UserError if it is missing or is no text."""
    if name not in record:
        raise UserError(
            f"lacks {name}{did_you_mean(name, record)}",
            file=path,
            record=where,
            found=", ".join(record),
            expected="image_id and caption",
        )
    if not isinstance(record[name], str):
        raise UserError(
            "is not a text", file=path, record=where, field=name, found=record[name], expected="a text"
        )
    return str(record[name])


# -- Clusters: the samples that show the same image, which are one independent unit of confidence
#    intervals


def cluster_of(sample: Sample, files: Mapping[str, ImageFile | BadImage]) -> str:
    if sample.cluster is not None or not sample.images:
        return sample.cluster or sample.id
    image = sample.images[0]
    file = files.get(image.path)
    if isinstance(file, ImageFile):
        return file.digest
    return f"file {os.path.relpath(image.path, image.root or os.path.dirname(image.path))}"


def inspect_sample(sample: Sample, probes: Iterable[Probe] = ()) -> Mapping[str, ImageFile | BadImage]:
    """Inspect the image that names the cluster of a sample, and the images that judges see; uses no store."""
    files: dict[str, ImageFile | BadImage] = {}
    evidence = (image for probe in probes for image in probe.evidence)
    for image in dict.fromkeys([*cluster_images(sample), *evidence]):
        try:
            files[image.path] = inspect_image(image, {})
        except BadImage as error:
            files[image.path] = error
    return files


def cluster_images(sample: Sample) -> tuple[ImageRef, ...]:
    return sample.images[:1] if sample.cluster is None else ()
