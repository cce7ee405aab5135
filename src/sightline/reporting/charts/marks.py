"""Colours, marks, dashes and hatches of charts: each series differs in form and not in colour alone."""

from __future__ import annotations

from typing import Any

from sightline.reporting.charts.chart_values import Chart

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")
"""The palette of Okabe and Ito, which is safe for colour-blind readers, without its yellow (low contrast)."""

MARKS, HOLLOW = "osD^v>PX*", "sD^v<>ph"
DASHES = ("-", "--", ":", "-.")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo", "**")
GREY, LIGHT = "#555555", "#c8c8c8"
HUMAN = "*"


def series_style(nth: int) -> dict[str, Any]:
    """The colour and the mark of a series."""
    return {"color": COLOURS[nth % len(COLOURS)], "marker": MARKS[(nth + nth // len(COLOURS)) % len(MARKS)]}


def published_style(nth: int, *, human: bool = False) -> dict[str, Any]:
    """The mark of a published row: hollow and grey."""
    mark = HUMAN if human else HOLLOW[nth % len(HOLLOW)]
    return {
        "color": GREY,
        "marker": mark,
        "markerfacecolor": "white",
        "markeredgewidth": 0.9,
        "linestyle": "none",
    }


def is_human(name: str, chart: Chart) -> bool:
    """Whether a published row of a chart is one of humans."""
    return any(name.startswith(f"{row}, ") for row in chart.humans)
