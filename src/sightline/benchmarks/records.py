"""Reading released JSON: every record checked, every fault told with file, record and field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sightline.errors import UserError
from sightline.formats.files import json_records, read_bytes

Record = TypeVar("Record")

_MISSING = re.compile(r"missing required field `([^`]+)`")


def read_records(path: Path, kind: type[Record], *, name: str) -> list[Record]:
    """The records of a JSON list or of JSON Lines (`name` is the field that identifies one, for errors).

    Raises UserError where the file is missing or truncated, or a record lacks a field or has one of the
    wrong type.
    """
    content = read_bytes(path)
    try:
        if content.lstrip().startswith(b"["):
            return msgspec.json.decode(content, type=list[kind])  # type: ignore[valid-type]
        return msgspec.json.Decoder(kind).decode_lines(content)
    except msgspec.DecodeError:
        for where, record in json_records(content, path):
            _check(path, where, record, kind, name)
        raise


def refuse_doubles(path: Path, ids: Sequence[str]) -> None:
    """Raise UserError for the first id that occurs twice."""
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
    """The folder that holds `file`: the one named, or its subfolder of the benchmark's name."""
    if folder is None:
        raise UserError(
            f"no data folder for {benchmark}",
            expected=f"--data DIR or SIGHTLINE_DATA with {file}, or `sightline data pull {benchmark}`",
        )
    for place in (folder, folder / benchmark):
        if (place / file).is_file():
            return place
    if not folder.is_dir():
        raise UserError("this data folder does not exist", file=folder, expected=f"a folder with {file}")
    raise UserError(f"{file} is not in this folder", file=folder, expected=f"the layout of {benchmark}")


def _check(path: Path, where: str, record: dict[str, Any], kind: type[Any], name: str) -> None:
    """Raise the UserError for a record that is not of its kind: which one, which field, what is wrong."""
    try:
        msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        missing = _MISSING.search(message)
        inside = place.strip("`.")
        field = ".".join(part for part in (inside, missing.group(1) if missing else "") if part)
        named = record.get(name)
        raise UserError(
            message[0].lower() + message[1:],
            file=path,
            record=named if isinstance(named, str) else where,
            field=field or None,
            expected="the released layout",
        ) from None
