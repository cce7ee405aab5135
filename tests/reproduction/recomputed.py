"""What the tests that recompute metrics share: the command, its metrics, an interval of our own."""

from __future__ import annotations

import contextlib
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import stdtrit

from sightline.cli.main import main

Record = Mapping[str, Any]

JUDGE = r"""
import json, re
from pathlib import Path

from sightline.models.offline import OfflineModel
from sightline.types import Answer, Text


class Table(OfflineModel):
    def __init__(self, file):
        self.name = self.identity = f"table/{file}"
        self.host = "table"
        self.replies = json.loads(Path(file).read_text())

    async def answer(self, requests):
        for index, request in enumerate(requests):
            parts = [part for message in request.messages for part in message.parts]
            text = " ".join(part.text for part in parts if isinstance(part, Text))
            yield index, Answer(self.replies[" ".join(re.findall(r"\bid\d+", text))])


models = {"table/": lambda rest, spec, options: [Table(rest)]}
"""
"""A judge that answers each prompt by the numbers in it, as id7."""


class Unit(NamedTuple):
    """One unit that a metric averages, and the cluster that it belongs to."""

    value: float
    cluster: str


def write_lines(file: Path, records: Iterable[Record]) -> Path:
    file.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return file


def judged_by(folder: Path, replies: Mapping[str, str]) -> list[str]:
    """The options for a judge model that gives these replies."""
    (folder / "judge.py").write_text(JUDGE)
    (folder / "replies.json").write_text(json.dumps(replies))
    return ["--plugin", str(folder / "judge.py"), "--judge", f"table/{folder / 'replies.json'}"]


def measure(out: Path, *words: str, status: int = 0) -> Mapping[tuple[str, str], Record]:
    """The metrics that a command writes into a folder, by name and subset."""
    assert main([*words, "--out", str(out), "--store", str(out.with_suffix(".db")), "--quiet"]) == status
    metrics = json.loads((out / "metrics.json").read_text())["metrics"]
    return {(metric["metric"], metric["subset"]): metric for metric in metrics}


def report(out: Path, *words: str) -> Mapping[str, Record]:
    """The rows that `report` prints of a results folder, by metric, with the names of metrics.json."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["report", str(out), *words, "--json", "--store", str(out.with_suffix(".db"))]) == 0
    (table,) = json.loads(printed.getvalue())
    return {
        row["metric"]: {name.removeprefix("value "): cell for name, cell in row.items()}
        for row in table["rows"]
    }


def check(found: Record, units: Iterable[Unit], *, low: float = 0, intervals: bool = True) -> None:
    """Value, n, clusters and confidence interval of a metric from `low` to 100 are those of its units."""
    units = list(units)
    counted = (found["n"], found["clusters"])
    assert counted == (len(units), len({unit.cluster for unit in units})), found
    if not units:
        assert found["value"] is None, found
        return
    assert found["value"] == pytest.approx(np.mean([unit.value for unit in units]), abs=1e-9), found
    if intervals and (bounds := interval(units, low)):
        assert (found["low"], found["high"]) == pytest.approx(bounds, abs=1e-6), found


def interval(units: list[Unit], low: float = 0, high: float = 100) -> tuple[float, float] | None:
    """The interval of docs/intervals.md; None where another rule holds (few clusters, no variance)."""
    clusters = defaultdict(list)
    for unit in units:
        clusters[unit.cluster].append((unit.value - low) / (high - low))
    sizes = np.array([len(values) for values in clusters.values()])
    of, p = sizes.sum(), np.mean([value for values in clusters.values() for value in values])
    residuals = np.array([sum(values) - p * len(values) for values in clusters.values()])
    if len(sizes) < 5 or not np.abs(residuals).max() > 1e-12:
        return None
    h = sizes / of
    if sizes.max() == 1 and all(value in (0, 1) for [value] in clusters.values()):
        n, t = float(of), 1.959963984540054
    else:
        variance = (residuals**2 / (1 - h)).sum() / of**2
        products = -np.outer(sizes, sizes) / of / np.sqrt(np.outer(1 - h, 1 - h))
        np.fill_diagonal(products, sizes)
        n, t = p * (1 - p) / variance, stdtrit(sizes.sum() ** 2 / (products**2).sum(), 0.975)
    centre = (p + t**2 / (2 * n)) / (1 + t**2 / n)
    half = t / (1 + t**2 / n) * sqrt(p * (1 - p) / n + t**2 / (4 * n**2))
    least, most = (float(np.clip(bound, 0, 1)) for bound in (centre - half, centre + half))
    return low + (high - low) * least, low + (high - low) * most
