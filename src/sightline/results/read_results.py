"""Reading the results of earlier evaluations from their folders."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from sightline.decoding import decode_json
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.whole_results import METRICS, refuse_mixed_files
from sightline.metric_types import Result
from sightline.results.sweep_record import SweepRecord

SWEEP = "sweep.json"

_Record = TypeVar("_Record")


def is_sweep(folder: Path) -> bool:
    """Check whether a folder holds a sweep."""
    return (folder / SWEEP).is_file()


def read_result(path: Path) -> Result:
    """Read the result of an evaluation."""
    if path.is_dir():
        refuse_mixed_files(path)
        path /= METRICS
    return _decode(path, METRICS, Result)


def read_sweep(folder: Path) -> SweepRecord:
    record = _decode(folder / SWEEP, SWEEP, SweepRecord)
    if not any(point.result for point in record.points):
        raise UserError("no point of this sweep has a result", file=folder / SWEEP)
    return record


def sweep_task(folder: Path) -> str:
    """Read the task of a sweep, whether or not it has results."""
    return _decode(folder / SWEEP, SWEEP, SweepRecord).task


def _decode(path: Path, name: str, kind: type[_Record]) -> _Record:
    if not path.is_file():
        folder = path.parent if path.name == name else path
        expected = "a results folder (--out)" if name == METRICS else "a readable file"
        raise UserError(f"has no {name}", file=folder, expected=expected)
    return decode_json(read_bytes(path), kind, path, f"a valid {name}")
