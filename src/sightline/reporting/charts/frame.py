"""What stands around the panels of a chart: its title, its legend and its note."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sightline.escaping import for_plot
from sightline.reporting.charts.chart_values import Chart, mark_notes
from sightline.reporting.charts.marks import GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE = 5.0
"""A chart of this width in inches has two panels side by side."""

LETTERS = 17.0
"""The letters of the legend that fit in an inch."""

LINE_INCHES = 0.16


def grid_of(panels: int, width: float) -> tuple[int, int]:
    """Arrange panels."""
    across = min(panels, 1 if width < WIDE else 2)
    return -(-panels // across), across


def framed(width: float, height: float, title: str) -> Figure:
    """Make an empty figure with its title."""
    from matplotlib.figure import Figure

    lines = textwrap.wrap(for_plot(title), int(width * LETTERS * 0.8))
    figure = Figure(figsize=(width, height + LINE_INCHES * len(lines) + 0.08), layout="constrained")
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=8, fontweight="bold")
    return figure


def add_legend(figure: Figure, handles: Mapping[str, Any], order: Sequence[str], note: str) -> None:
    """Add one legend below all panels, and a note above its entries."""
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    names = [name for name in order if name and name in handles]
    longest = max(map(len, names), default=0)
    columns = max(1, min(len(names), int(width * LETTERS / (longest + 7))))
    note_lines = textwrap.wrap(for_plot(note), int(width * LETTERS))
    lines = len(note_lines) + -(-len(names) // columns)
    figure.set_size_inches(width, height + LINE_INCHES * lines + 0.08)
    # A legend without entries does not show its title.
    shown = [handles[name] for name in names] or [Line2D([], [], linestyle="none")]
    legend = figure.legend(
        shown,
        [for_plot(name) for name in names] or [""],
        title="\n".join(note_lines),
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        handlelength=2.2,
        columnspacing=1.2,
        borderpad=0.1,
        alignment="left",
        title_fontsize=7,
    )
    legend.get_title().set_color(GREY)


def note_of(chart: Chart, *, whiskers: str = "Whiskers", also: str = "") -> str:
    """What the parts of a chart are."""
    parts = [f"{whiskers}: {chart.interval}."]
    parts += [also] if also else []
    if chart.margin is not None:
        parts.append(f"Dashed: the margin of \N{PLUS-MINUS SIGN}{chart.margin:g}.")
    if chart.published_rows:
        parts.append("Hollow: published.")
        parts += [f"{note}." for note in mark_notes(chart)]
    return " ".join(parts)
