"""What the files of a run say that does not depend on how fast the model answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def lasting_metrics(folder: Path) -> dict[str, Any]:
    """metrics.json without the time that answers took, and the digests of files that say it."""
    found: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return {field: value for field, value in found.items() if field not in ("spent", "files")}


def lasting_lines(file: Path) -> list[dict[str, Any]]:
    """The lines of answers.jsonl without the time that each answer took."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [{field: value for field, value in line.items() if field != "latency"} for line in lines]
