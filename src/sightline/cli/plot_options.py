"""The options of commands that draw their table: --plot and what belongs to it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.reporting.charts.draw import ChartRequest


def add_plot(
    parser: argparse.ArgumentParser, kinds: Sequence[str] = (), *, drawn: str, metrics: bool = False
) -> None:
    """Add --plot, its width, and its kind and metrics where the table leaves a choice.

    Args:
        kinds: The kinds of charts that the table can have besides its own; none if there is no choice.
    """
    group = parser.add_argument_group("plot")
    add = group.add_argument
    add(
        "--plot",
        metavar="FILE",
        help=f"plot {drawn} into FILE, which ends in .svg, .pdf or .png, besides printing it; needs"
        " pip install 'sightline[plot]'",
    )
    if kinds:
        add(
            "--plot-kind",
            choices=kinds,
            help="another kind of plot than the usual one of the table (docs/plots.md)",
        )
    if metrics:
        add(
            "--plot-metric",
            action="append",
            default=[],
            metavar="NAME",
            help="metric to plot; may repeat (default: the leading metrics of the benchmark)",
        )
    add(
        "--plot-columns",
        type=int,
        choices=(1, 2),
        default=2,
        help="width of the plot: one (85 mm) or two (175 mm) columns of a paper (default: 2)",
    )


def chart_request(options: argparse.Namespace) -> ChartRequest | None:
    """Read the options of --plot, and check the file before any work.

    Returns:
        What the user asks; None without --plot.
    """
    kind, metrics = getattr(options, "plot_kind", None), tuple(getattr(options, "plot_metric", ()))
    if options.plot is None:
        if kind or metrics:
            raise UserError("--plot-kind and --plot-metric need --plot", expected="--plot FILE.svg")
        return None
    from sightline.reporting.charts.chart_file import check_chart_file
    from sightline.reporting.charts.draw import ChartRequest

    check_chart_file(Path(options.plot))
    return ChartRequest(Path(options.plot), kind, metrics, options.plot_columns)
