"""ROC curves as SVG: how many right and wrong answers each judge accepts. The numbers stand in tables too."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sightline.judging.judge_results import JudgeResult
from sightline.metric_types import MetricValue
from sightline.reporting.html.figures import number

SIDE, LEFT, TOP = 300.0, 48.0, 12.0
"""The side of the area of the curves and its place, in pixels."""

TICKS = (0, 25, 50, 75, 100)

MOST_CURVES = 8
"""More curves cannot be told apart."""

MOST_MARKED = 4
"""A curve with at most so many points is that of a judge with verdicts, not with numbers: they are marked."""


class RocLine(Struct, frozen=True):
    """The curve of a judge: its points for SVG, and those that are marked."""

    judge: str
    points: str
    marked: tuple[tuple[float, float], ...]
    area: MetricValue


class RocChart(Struct, frozen=True):
    """The curves of judges; `x_ticks` and `y_ticks` are places on the axes with their texts."""

    lines: tuple[RocLine, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    label: str


def roc_chart(rows: Sequence[JudgeResult]) -> RocChart | None:
    """Draw the curves of judges.

    Returns:
        The chart, with the largest areas first; None if humans call all answers right, or all wrong.
    """
    drawn = sorted((row for row in rows if row.curve), key=lambda row: -(row.roc_auc.value or 0.0))
    if not drawn:
        return None
    return RocChart(
        tuple(map(_line, drawn[:MOST_CURVES])),
        tuple((_x(tick / 100), str(tick)) for tick in TICKS),
        tuple((_y(tick / 100), str(tick)) for tick in TICKS),
        "; ".join(f"{row.judge}: area {number(row.roc_auc.value)} percent" for row in drawn[:MOST_CURVES]),
    )


def _line(row: JudgeResult) -> RocLine:
    places = [(_x(wrong), _y(right)) for wrong, right in row.curve]
    inner = tuple(places[1:-1])
    return RocLine(
        row.judge,
        " ".join(f"{x},{y}" for x, y in places),
        inner if len(inner) <= MOST_MARKED else (),
        row.roc_auc,
    )


def _x(share: float) -> float:
    return round(LEFT + SIDE * share, 1)


def _y(share: float) -> float:
    return round(TOP + SIDE * (1 - share), 1)
