"""Scores collected answers by the command; recounts shares and intervals without the project's code."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.stats import t

from sightline.cli.main import main

Unit = tuple[str, bool]
"""The cluster of a unit, and whether it counts."""

Row = dict[str, Any]


def draw(folder: Path, name: str, number: int) -> str:
    """An image whose content depends on the number only; returns its name."""
    folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (16, 12), (number * 7 % 256, number * 31 % 256, number * 53 % 256)).save(folder / name)
    return name


def write_lines(file: Path, records: Iterable[Row]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def evaluate(command: str, task: str, *rest: str, data: Path, out: Path, status: int = 0) -> Row:
    """The metrics.json of a command with this exit status; `rows` has its rows by metric and subset."""
    words = [command, task, *rest, "--data", str(data), "--out", str(out), "--store", f"{out}.db", "--quiet"]
    assert main(words) == status
    found: Row = json.loads((out / "metrics.json").read_text())
    return found | {"rows": {(row["metric"], row["subset"]): row for row in found["metrics"]}}


def check(row: Row, units: Sequence[Unit]) -> None:
    """A row has the share of the units, their number, that of their clusters, and the interval."""
    assert row["value"] == pytest.approx(100 * sum(counts for _, counts in units) / len(units), abs=1e-9)
    assert (row["n"], row["clusters"]) == (len(units), len({cluster for cluster, _ in units}))
    if row["clusters"] >= 10 and len({counts for _, counts in units}) > 1:
        assert row["interval"] == "wilson"
        bounds = [100 * bound for bound in interval(units)]
        assert [row["low"], row["high"]] == pytest.approx(bounds, abs=1e-6)


def interval(units: Sequence[Unit]) -> tuple[float, float]:
    """Wilson's interval with CR2's variance and Satterthwaite's degrees of freedom (docs/intervals.md)."""
    of: dict[str, list[bool]] = defaultdict(list)
    for cluster, counts in units:
        of[cluster].append(counts)
    total = np.array([sum(members) for members in of.values()], float)
    size = np.array([len(members) for members in of.values()], float)
    share, part = total.sum() / size.sum(), size / size.sum()
    if (size == 1).all():
        effective, quantile = float(len(size)), 1.959963984540054
    else:
        variance = ((total - share * size) ** 2 / (1 - part)).sum() / size.sum() ** 2
        effective = share * (1 - share) / variance
        # The covariance of the scaled residuals of the clusters, if all units are independent and alike.
        spread = np.diag(size) - np.outer(size, size) / size.sum()
        spread /= np.sqrt(np.outer(1 - part, 1 - part))
        quantile = float(t.ppf(0.975, np.trace(spread) ** 2 / (spread**2).sum()))
    square = quantile**2
    middle = (share + square / (2 * effective)) / (1 + square / effective)
    half = quantile * np.sqrt(share * (1 - share) / effective + square / (4 * effective**2))
    half /= 1 + square / effective
    return middle - half, middle + half
