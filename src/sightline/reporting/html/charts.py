"""Charts as SVG without a script: a scatter plot and a radar. Their numbers stand in tables too."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from sightline.reporting.html.plots import Scale

WIDTH, HEIGHT = 640.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 24.0, 12.0, 40.0
"""The frame around the area of a scatter plot, for the numbers of its axes."""

RADAR, RADIUS = 420.0, 130.0
"""The width of a radar chart, and the distance of its outer ring from the centre."""


class Dot(Struct, frozen=True):
    """A point of a scatter plot, in pixels; `is_run` is a measured one."""

    name: str
    x: float
    y: float
    is_run: bool
    label: str


class Scatter(Struct, frozen=True):
    """A scatter plot: grid lines with their texts, and points."""

    x_name: str
    y_name: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    dots: tuple[Dot, ...]
    label: str


class Spoke(Struct, frozen=True):
    """An axis of a radar chart: its end, and the place and side of its name."""

    name: str
    x: float
    y: float
    text_x: float
    text_y: float
    anchor: str


class Ring(Struct, frozen=True):
    """A closed line of a radar chart as SVG points; the name of its run, or the number of a grid line."""

    name: str
    points: str


class Radar(Struct, frozen=True):
    """A radar chart: an axis for each label, a line for each run."""

    spokes: tuple[Spoke, ...]
    grid: tuple[Ring, ...]
    rings: tuple[Ring, ...]
    label: str


class Value2D(Struct, frozen=True):
    """Two values of one run or row."""

    name: str
    x: float
    y: float
    is_run: bool


def scatter(points: Sequence[Value2D], x: Scale, y: Scale, names: tuple[str, str]) -> Scatter:
    """Draw points of two metrics."""

    def at_x(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - x.low) / (x.high - x.low), 1)

    def at_y(value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - y.low) / (y.high - y.low), 1)

    dots = tuple(
        Dot(one.name, at_x(one.x), at_y(one.y), one.is_run, f"{one.name}: {one.x:.1f}, {one.y:.1f}")
        for one in points
    )
    return Scatter(
        *names,
        tuple((at_x(tick), x.tick_text(tick)) for tick in x.ticks),
        tuple((at_y(tick), y.tick_text(tick)) for tick in y.ticks),
        dots,
        f"{names[1]} against {names[0]}. " + "; ".join(dot.label for dot in dots),
    )


def radar(labels: Sequence[str], values: Sequence[tuple[str, Sequence[float]]], scale: Scale) -> Radar:
    """Draw the values of runs under labels; three labels or more."""

    def place(number: int, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * number / len(labels) - math.pi / 2
        centre = RADAR / 2, RADIUS + 40
        return (
            round(centre[0] + RADIUS * share * math.cos(angle), 1),
            round(centre[1] + RADIUS * share * math.sin(angle), 1),
        )

    def ring(name: str, shares: Sequence[float]) -> Ring:
        return Ring(name, " ".join("{},{}".format(*place(nth, share)) for nth, share in enumerate(shares)))

    def share(value: float) -> float:
        return (value - scale.low) / (scale.high - scale.low)

    spokes = []
    for number, label in enumerate(labels):
        text_x, text_y = place(number, 1.12)
        side = text_x - RADAR / 2
        anchor = "middle" if abs(side) < 10 else "start" if side > 0 else "end"
        spokes.append(Spoke(label, *place(number, 1), text_x, text_y, anchor))
    words = [
        f"{name}: " + ", ".join(f"{label} {value:.1f}" for label, value in zip(labels, own, strict=True))
        for name, own in values
    ]
    return Radar(
        tuple(spokes),
        tuple(ring(scale.tick_text(tick), [share(tick)] * len(labels)) for tick in scale.ticks[1:]),
        tuple(ring(name, [share(value) for value in own]) for name, own in values),
        "; ".join(words),
    )
