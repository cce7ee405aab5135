"""Reads and checks released JSON records; an error names file, record and field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sightline.decoding import UNDECODABLE, fault, json_records
from sightline.errors import UserError
from sightline.formats.content import read_bytes

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
    """Check that no id occurs twice."""
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

    Args:
        folder: The user's data folder, or None.
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
