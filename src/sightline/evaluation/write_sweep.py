"""Writing the files of a sweep: sweep.json, the whole sweep as data, and sweep.md, its tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from sightline.errors import EnvironmentFailedError
from sightline.formats.files import write_atomically
from sightline.reporting.sweep_tables import PointLine, sweep_markdown
from sightline.reporting.varied_options import ResultPoint
from sightline.results.sweep_record import SweepRecord


def write_sweep(out: str, record: SweepRecord, results: Sequence[ResultPoint]) -> None:
    """Write sweep.json and sweep.md."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFailedError(f"{folder}: cannot be made: {error.strerror}") from None
    body = msgspec.json.format(msgspec.json.encode(record), indent=1)
    write_atomically(folder / "sweep.json", [body, b"\n"])
    points = [PointLine(point.name, point.folder, point.state) for point in record.points]
    write_atomically(folder / "sweep.md", [sweep_markdown(record.task, results, points).encode()])
