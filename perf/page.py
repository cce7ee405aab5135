"""Writes docs/performance.md from the results of the parts."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import msgspec

from measurement import Measurement
from parts import PARTS, Part

WIDTH = 110
PAGE = Path(__file__).resolve().parents[1] / "docs/performance.md"

HEAD = """# Performance

`python perf` measures the parts of this page one after the other and writes it;
[perf/README.md](../perf/README.md) says how, and holds further measurements. Times differ between machines
and hours: compare ratios. Each part names the machine, and the processor time of 10 million additions in a
Python loop before and after it, which shows how fast the machine was.
"""


def write_page(results: Path) -> Path:
    """Write the page.

    Args:
        results: The folder with the results.

    Returns:
        The page.
    """
    PAGE.write_text(page(results), encoding="utf-8")
    return PAGE


def page(results: Path) -> str:
    """Make the text of the page.

    Args:
        results: The folder with the results.

    Returns:
        Markdown.
    """
    return "\n".join([HEAD, *(_section(part, results / f"{part.name}.json") for part in PARTS)])


def _section(part: Part, file: Path) -> str:
    lines = [f"## {part.title}", "", fill(part.about, WIDTH, break_on_hyphens=False), ""]
    if not file.exists():
        return "\n".join([*lines, "Not measured yet.", ""])
    measured = msgspec.json.decode(file.read_bytes(), type=Measurement)
    if measured.missing is not None:
        return "\n".join([*lines, f"Not measured: {measured.missing}.", ""])
    for table in measured.report.tables:
        lines += [f"{table.title}:", ""] if table.title else []
        lines += [*table.markdown(), ""]
    lines += [line for note in measured.report.notes for line in (note, "")]
    before, after = measured.additions
    return "\n".join(
        [
            *lines,
            f"`{measured.command}`, {measured.date}, commit {measured.commit}: {measured.machine};"
            f" 10 million additions {before:.2f} s before and {after:.2f} s after.",
            "",
        ]
    )
