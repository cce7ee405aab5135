"""Renders a scene to an image: one function draws each shape."""

from __future__ import annotations

from io import BytesIO
from math import cos, radians, sin

from PIL import Image, ImageColor, ImageDraw

from training.scenes.drawing import PALETTE, Pen, Scene, Shapes, Thing, painters

# -- Draws everyday things: people, houses, vehicles, clocks, cups; one function per shape


def _band(pen: Pen, thing: Thing) -> None:
    """A plain rectangle that fills its box: ground, sky, a panel, a frame's inside."""
    pen.box(-1, -1, 1, 1, thing.colour)


def _words(pen: Pen, thing: Thing) -> None:
    """Writing alone; its height is a quarter of its box."""
    pen.text(0, 0, thing.text, 0.5, thing.colour)


def _person(pen: Pen, thing: Thing) -> None:
    _body(pen, thing.colour)
    pen.line([(0.3, -0.36), (0.46, 0.2)], thing.colour, 0.17)
    pen.disc(0.47, 0.24, 0.09, "skin")


def _giver(pen: Pen, thing: Thing) -> None:
    """A person who holds one arm out to the right."""
    _body(pen, thing.colour)
    pen.line([(0.26, -0.34), (0.85, -0.12)], thing.colour, 0.17)
    pen.disc(0.92, -0.1, 0.1, "skin")


def _body(pen: Pen, shirt: str) -> None:
    pen.box(-0.27, 0.2, -0.03, 0.98, "slate", 0.08)
    pen.box(0.03, 0.2, 0.27, 0.98, "slate", 0.08)
    pen.line([(-0.3, -0.36), (-0.46, 0.2)], shirt, 0.17)
    pen.disc(-0.47, 0.24, 0.09, "skin")
    pen.box(-0.36, -0.48, 0.36, 0.32, shirt, 0.14)
    pen.disc(0, -0.74, 0.24, "skin")
    pen.segment(0, -0.76, 0.25, (185, 355), "#4a3426")
    for x in (-0.08, 0.08):
        pen.disc(x, -0.72, 0.03, "black")


def _gift(pen: Pen, thing: Thing) -> None:
    pen.box(-0.8, -0.35, 0.8, 0.95, thing.colour)
    pen.box(-0.92, -0.5, 0.92, -0.15, thing.colour)
    pen.box(-0.14, -0.5, 0.14, 0.95, "gold")
    pen.disc(-0.32, -0.68, 0.3, "gold", 0.2)
    pen.disc(0.32, -0.68, 0.3, "gold", 0.2)


def _house(pen: Pen, thing: Thing) -> None:
    pen.box(-0.75, -0.15, 0.75, 1, "#f3e3c3")
    pen.polygon([(-0.98, -0.1), (0, -0.98), (0.98, -0.1)], "#b5432f")
    pen.box(-0.5, 0.3, -0.08, 1, "brown")
    pen.box(0.2, 0.2, 0.56, 0.56, "water")


def _tree(pen: Pen, thing: Thing) -> None:
    pen.box(-0.14, 0.1, 0.14, 1, "brown")
    for x, y, r in ((-0.4, -0.1, 0.45), (0.4, -0.1, 0.45), (0, -0.48, 0.5), (0, 0.02, 0.45)):
        pen.disc(x, y, r, thing.colour)


def _tower(pen: Pen, thing: Thing) -> None:
    pen.box(-0.4, -0.6, 0.4, 1, thing.colour)
    for x in (-0.55, -0.16, 0.23):
        pen.box(x, -1, x + 0.32, -0.55, thing.colour)
    pen.box(-0.55, -0.72, 0.55, -0.4, thing.colour)
    pen.box(-0.16, 0.45, 0.16, 1, "#3b3f46", 0.1)
    pen.box(-0.08, -0.2, 0.08, 0.15, "#3b3f46")


def _tent(pen: Pen, thing: Thing) -> None:
    pen.polygon([(-1, 0.9), (0, -0.8), (1, 0.9)], thing.colour)
    pen.polygon([(-0.3, 0.9), (0, -0.2), (0.3, 0.9)], "#4a3426")


def _compass(pen: Pen, thing: Thing) -> None:
    """A compass rose that names no direction."""
    pen.ring(0, 0, 0.62, "slate", 0.07)
    tips = [(0.2 if corner % 2 else 1.0, radians(45 * corner)) for corner in range(8)]
    pen.polygon([(r * cos(angle), r * sin(angle)) for r, angle in tips], "slate")


def _slope(pen: Pen, thing: Thing) -> None:
    """Ground that rises to the right, from the bottom of its box to the top."""
    pen.polygon([(-1, 1), (-1, 0.72), (-0.62, 0.72), (0.62, -0.72), (1, -0.72), (1, 1)], thing.colour)
    pen.line([(-1, 0.72), (-0.62, 0.72), (0.62, -0.72), (1, -0.72)], "slate", 0.05)


def _car(pen: Pen, thing: Thing) -> None:
    """A car from the side whose two ends look the same."""
    pen.polygon([(-0.6, -0.1), (-0.42, -0.62), (0.42, -0.62), (0.6, -0.1)], thing.colour)
    pen.box(-1, -0.15, 1, 0.38, thing.colour, 0.15)
    pen.polygon([(-0.44, -0.12), (-0.33, -0.5), (-0.05, -0.5), (-0.05, -0.12)], "sky")
    pen.polygon([(0.44, -0.12), (0.33, -0.5), (0.05, -0.5), (0.05, -0.12)], "sky")
    for x in (-0.55, 0.55):
        pen.disc(x, 0.38, 0.27, "black")
        pen.disc(x, 0.38, 0.12, "grey")


def _clock(pen: Pen, thing: Thing) -> None:
    """A clock's face with twelve marks and four numbers; its hands are things of their own."""
    pen.disc(0, 0, 1, thing.colour)
    pen.disc(0, 0, 0.9, "white")
    for hour in range(1, 13):
        x, y = sin(radians(30 * hour)), -cos(radians(30 * hour))
        if hour % 3:
            pen.line([(0.74 * x, 0.74 * y), (0.84 * x, 0.84 * y)], "black", 0.05)
        else:
            pen.text(0.7 * x, 0.7 * y, str(hour), 0.3)


def _hand(pen: Pen, thing: Thing) -> None:
    """A clock's hand that points from the middle of its box to the top."""
    pen.line([(0, 0.12), (0, -1)], thing.colour, 0.13)
    pen.disc(0, 0, 0.13, thing.colour)


def _minute_hand(pen: Pen, thing: Thing) -> None:
    """The longer and thinner hand."""
    pen.line([(0, 0.12), (0, -1)], thing.colour, 0.055)
    pen.disc(0, 0, 0.07, thing.colour)


def _sun(pen: Pen, thing: Thing) -> None:
    for angle in range(0, 360, 30):
        x, y = cos(radians(angle)), sin(radians(angle))
        pen.line([(0.72 * x, 0.72 * y), (0.97 * x, 0.97 * y)], thing.colour, 0.1)
    pen.disc(0, 0, 0.6, thing.colour)


def _sea(pen: Pen, thing: Thing) -> None:
    pen.box(-1, -1, 1, 1, "water")
    for row, y in enumerate((-0.6, -0.1, 0.4, 0.85)):
        for column in range(4):
            left = -0.7 + 0.4 * column + 0.2 * (row % 2)
            pen.line([(left - 0.1, y), (left, y + 0.07), (left + 0.1, y)], "#b9d9ee", 0.02)


def _ball(pen: Pen, thing: Thing) -> None:
    pen.disc(0, 0, 1, thing.colour)
    pen.ring(-1.05, 0, 0.9, "white", 0.14, (-52, 52))
    pen.ring(1.05, 0, 0.9, "white", 0.14, (128, 232))


def _door(pen: Pen, thing: Thing) -> None:
    pen.box(-0.62, -0.98, 0.62, 1, "#5b4636")
    pen.box(-0.54, -0.93, 0.54, 1, thing.colour)
    pen.box(-0.32, -0.72, 0.32, -0.36, "white", 0.06)
    pen.text(0, -0.54, thing.text, 0.32)
    pen.disc(0.4, 0.12, 0.07, "gold")


def _card(pen: Pen, thing: Thing) -> None:
    pen.box(-1, -1, 1, 1, "white", 0.06)
    pen.box(-1, -1, 1, -0.62, thing.colour, 0.06)
    pen.text(0, 0.2, thing.text, 0.62)


def _cup(pen: Pen, thing: Thing) -> None:
    pen.ring(0.55, 0.0, 0.34, thing.colour, 0.16)
    pen.polygon([(-0.75, -0.7), (0.6, -0.7), (0.45, 0.8), (-0.6, 0.8)], thing.colour)
    pen.disc(-0.075, -0.7, 0.675, "#eeeeee", 0.16)


def _finger(pen: Pen, thing: Thing) -> None:
    pen.box(-0.55, -1, 0.55, -0.62, thing.colour)
    pen.box(-0.5, -0.72, 0.5, 0.2, "skin", 0.2)
    for x in (-0.08, 0.2, 0.46):
        pen.disc(x, 0.18, 0.15, "#d79c72")
    pen.box(-0.5, -0.2, -0.22, 0.98, "skin", 0.13)


def _arrow(pen: Pen, thing: Thing) -> None:
    """An arrow that points to the top of its box."""
    pen.line([(0, 0.8), (0, -0.2)], thing.colour, 0.34)
    pen.polygon([(-0.7, -0.1), (0, -0.95), (0.7, -0.1)], thing.colour)


EVERYDAY_SHAPES = painters(
    _band,
    _words,
    _person,
    _giver,
    _gift,
    _house,
    _tree,
    _tower,
    _tent,
    _compass,
    _slope,
    _car,
    _clock,
    _hand,
    _minute_hand,
    _sun,
    _sea,
    _ball,
    _door,
    _card,
    _cup,
    _finger,
    _arrow,
)


# -- Draws the things of pictograms: fish, scales, candles, masks, bubbles; one function per shape


def _fish(pen: Pen, thing: Thing) -> None:
    """A small fish that swims to the right."""
    pen.polygon([(-0.4, 0), (-1, -0.5), (-1, 0.5)], thing.colour)
    pen.disc(0.15, 0, 0.8, thing.colour, 0.48)
    pen.disc(0.55, -0.12, 0.13, "white")
    pen.disc(0.58, -0.12, 0.07, "black")


def _hungry_fish(pen: Pen, thing: Thing) -> None:
    """A big fish with its toothed mouth open to the right."""
    pen.polygon([(-0.55, 0), (-1, -0.55), (-0.88, 0), (-1, 0.55)], thing.colour)
    pen.polygon([(-0.3, -0.5), (0.05, -0.85), (0.25, -0.5)], thing.colour)
    pen.disc(0.05, 0, 0.78, thing.colour, 0.62)
    pen.polygon([(0.15, 0.02), (0.98, -0.5), (0.98, 0.54)], "#5c1414")
    for x in (0.3, 0.48, 0.66):
        edge = 0.62 * (x - 0.15)
        pen.polygon([(x, 0.02 - edge), (x + 0.16, -0.08 - edge), (x + 0.12, 0.16 - edge)], "white")
        pen.polygon([(x, 0.02 + edge), (x + 0.16, 0.12 + edge), (x + 0.12, -0.12 + edge)], "white")
    pen.disc(0.28, -0.32, 0.12, "white")
    pen.disc(0.32, -0.3, 0.06, "black")
    pen.line([(0.14, -0.5), (0.42, -0.42)], "black", 0.05)


def _scales(pen: Pen, thing: Thing) -> None:
    """A balance whose left pan hangs low and whose right pan hangs high."""
    pen.box(-0.06, -0.8, 0.06, 0.85, thing.colour)
    pen.polygon([(-0.4, 0.98), (0, 0.75), (0.4, 0.98)], thing.colour)
    pen.line([(-0.68, -0.5), (0.68, -0.9)], thing.colour, 0.07)
    pen.disc(0, -0.72, 0.1, thing.colour)
    for x, top, pan in ((-0.68, -0.5, 0.55), (0.68, -0.9, 0.15)):
        pen.line([(x - 0.3, pan), (x, top), (x + 0.3, pan)], thing.colour, 0.025)
        pen.polygon(
            [(x - 0.32, pan), (x + 0.32, pan), (x + 0.18, pan + 0.15), (x - 0.18, pan + 0.15)], thing.colour
        )


def _coins(pen: Pen, thing: Thing) -> None:
    for y in (0.7, 0.35, 0.0, -0.35):
        pen.disc(0, y + 0.12, 0.95, "#a8770f", 0.3)
        pen.disc(0, y, 0.95, "gold", 0.3)
    pen.disc(0, -0.35, 0.7, "#f4cf6d", 0.2)
    pen.text(0, -0.35, "$", 0.44, "#8a6000")


def _heart(pen: Pen, thing: Thing) -> None:
    pen.disc(-0.46, -0.35, 0.49, thing.colour)
    pen.disc(0.46, -0.35, 0.49, thing.colour)
    pen.polygon([(-0.9, -0.12), (0, -0.35), (0.9, -0.12), (0, 0.95)], thing.colour)


def _link(pen: Pen, thing: Thing) -> None:
    pen.ring(-0.5, 0, 0.42, thing.colour, 0.26, (90, 270))
    pen.ring(0.5, 0, 0.42, thing.colour, 0.26, (-90, 90))
    for y in (-0.42, 0.42):
        pen.line([(-0.5, y), (0.5, y)], thing.colour, 0.26)


def _burst_link(pen: Pen, thing: Thing) -> None:
    """A link of a chain whose right end is torn open, with sparks."""
    pen.ring(-0.5, 0, 0.42, thing.colour, 0.26, (90, 270))
    for y in (-0.42, 0.42):
        pen.line([(-0.5, y), (0.1, y * 1.3)], thing.colour, 0.26)
    for x, y in ((0.95, -0.75), (1.1, 0), (0.95, 0.75)):
        pen.line([(0.55 * x, 0.6 * y), (x, y * 1.3)], "orange", 0.14)


def _candle(pen: Pen, thing: Thing) -> None:
    """A bar of wax with a wick at either end."""
    pen.line([(-1, 0), (1, 0)], "black", 0.05)
    pen.box(-0.86, -0.16, 0.86, 0.16, thing.colour, 0.08)
    for x in (-0.75, 0.7):
        pen.box(x - 0.06, 0.05, x + 0.06, 0.34, thing.colour, 0.05)


def _flame(pen: Pen, thing: Thing) -> None:
    for scale, colour in ((1.0, "orange"), (0.6, "yellow")):
        foot = 0.55 + 0.4 * (1 - scale)
        pen.disc(0, foot - 0.1, 0.55 * scale, colour, 0.5 * scale)
        pen.polygon(
            [(-0.54 * scale, foot - 0.2), (0, foot - 1.45 * scale), (0.54 * scale, foot - 0.2)], colour
        )


def _hourglass(pen: Pen, thing: Thing) -> None:
    """An hourglass whose sand runs down; there is room for something in the lower half."""
    pen.polygon([(-0.6, -0.9), (0.6, -0.9), (0.05, 0), (0.6, 0.9), (-0.6, 0.9), (-0.05, 0)], "#dff0f6")
    pen.polygon([(-0.38, -0.5), (0.38, -0.5), (0.04, 0), (-0.04, 0)], "#dcb35c")
    pen.line([(0, 0), (0, 0.88)], "#dcb35c", 0.04)
    pen.polygon([(-0.58, 0.9), (-0.4, 0.66), (0, 0.55), (0.4, 0.66), (0.58, 0.9)], "#dcb35c")
    for y in (-0.95, 0.95):
        pen.box(-0.72, y - 0.06, 0.72, y + 0.06, thing.colour)
    for x in (-0.66, 0.66):
        pen.line([(x, -0.9), (x, 0.9)], thing.colour, 0.05)


def _cliff(pen: Pen, thing: Thing) -> None:
    """A cliff whose edge is at its right, with grass on top."""
    pen.polygon([(-1, -0.9), (0.9, -0.9), (1, -0.7), (0.7, 0.1), (0.8, 0.5), (0.4, 1), (-1, 1)], "#8b7462")
    pen.box(-1, -1, 0.95, -0.85, "green")


def _bridge(pen: Pen, thing: Thing) -> None:
    _span(pen, thing.colour, -1, 1)


def _span(pen: Pen, colour: str, start: float, end: float) -> None:
    steps = [start + (end - start) * i / 12 for i in range(13)]
    for lift, width in ((0.0, 0.12), (-0.8, 0.04)):
        pen.line([(x, lift - 0.5 * (1 - x * x)) for x in steps], colour, width)
    for x in steps[::2]:
        y = -0.5 * (1 - x * x)
        pen.line([(x, y), (x, y - 0.8)], colour, 0.035)


def _phone(pen: Pen, thing: Thing) -> None:
    pen.box(-0.95, -1, 0.95, 1, thing.colour, 0.14)
    pen.box(-0.8, -0.84, 0.8, 0.76, "#e4f1fa")
    pen.disc(0, 0.88, 0.09, "grey", 0.06)


def _bars(pen: Pen, thing: Thing) -> None:
    for x in (-1, -0.6, -0.2, 0.2, 0.6, 1):
        pen.line([(x, -1), (x, 1)], thing.colour, 0.08)


def _sprout(pen: Pen, thing: Thing) -> None:
    pen.line([(0, 1), (0.03, 0), (0, -0.75)], "green", 0.1)
    for side, y in ((-1, 0.25), (1, -0.1), (-1, -0.45), (1, -0.7)):
        pen.polygon([(0, y), (side * 0.3, y - 0.3), (side * 0.8, y - 0.32), (side * 0.5, y)], thing.colour)


def _sad_face(pen: Pen, thing: Thing) -> None:
    pen.disc(0, 0, 1, thing.colour)
    for x in (-0.36, 0.36):
        pen.disc(x, -0.18, 0.11, "black", 0.14)
        pen.line([(x * 0.5, -0.5), (x * 1.5, -0.36)], "black", 0.07)
        pen.disc(x, 0.22, 0.1, "#2f8fe0", 0.18)
    pen.ring(0, 0.82, 0.42, "black", 0.08, (215, 325))


def _mask(pen: Pen, thing: Thing) -> None:
    pen.line([(0.75, 0.3), (1.15, 1.6)], "brown", 0.12)
    pen.disc(0, 0, 1, "black", 1.04)
    pen.disc(0, 0, 0.95, thing.colour)
    for x in (-0.38, 0.38):
        pen.ring(x, -0.12, 0.2, "black", 0.09, (190, 350))
        pen.disc(x * 1.5, 0.2, 0.14, "#f08a8a", 0.1)
    pen.segment(0, 0.15, 0.58, (15, 165), "#8c1c1c")


def _ladder(pen: Pen, thing: Thing) -> None:
    _rungs_and_rails(pen, thing.colour, (-0.8, -0.55, -0.3, -0.05, 0.2, 0.45, 0.7))


def _poor_ladder(pen: Pen, thing: Thing) -> None:
    """A ladder most of whose rungs are missing or broken."""
    _rungs_and_rails(pen, thing.colour, (-0.8, 0.7))
    for y in (-0.3, 0.2):
        pen.line([(-0.8, y), (-0.45, y + 0.04)], thing.colour, 0.22)


def _rungs_and_rails(pen: Pen, colour: str, rungs: tuple[float, ...]) -> None:
    for y in rungs:
        pen.line([(-0.8, y), (0.8, y)], colour, 0.22)
    for x in (-0.8, 0.8):
        pen.line([(x, -0.98), (x, 0.98)], colour, 0.28)


def _star(pen: Pen, thing: Thing) -> None:
    outer = [(0, -1), (0.95, -0.31), (0.59, 0.81), (-0.59, 0.81), (-0.95, -0.31)]
    inner = [(0.22, -0.31), (0.36, 0.12), (0, 0.38), (-0.36, 0.12), (-0.22, -0.31)]
    pen.polygon([point for pair in zip(outer, inner, strict=True) for point in pair], thing.colour)


def _globe(pen: Pen, thing: Thing) -> None:
    pen.disc(0, 0, 1, "#3f86cf")
    pen.polygon(
        [(-0.75, -0.5), (-0.3, -0.8), (0.1, -0.6), (-0.1, -0.2), (-0.4, 0.1), (-0.7, -0.1)], thing.colour
    )
    pen.polygon([(-0.3, 0.2), (0.1, 0.25), (0.05, 0.6), (-0.15, 0.9), (-0.35, 0.5)], thing.colour)
    pen.polygon([(0.3, -0.5), (0.75, -0.55), (0.9, -0.1), (0.7, 0.4), (0.45, 0.3), (0.3, -0.1)], thing.colour)


def _cone(pen: Pen, thing: Thing) -> None:
    pen.polygon([(-0.62, -1), (0.62, -1), (0, 1)], "#d99a4e")
    for x in (-0.35, 0, 0.35):
        pen.line([(x, -0.95), (x + 0.3 * (0.05 - x), -0.1)], "#a86e2c", 0.04)
    pen.box(-0.7, -1, 0.7, -0.84, "#c5843a", 0.05)


def _drip(pen: Pen, thing: Thing) -> None:
    pen.box(-0.6, -1, 0.6, 0.6, thing.colour, 0.3)
    pen.disc(0, 0.55, 0.75, thing.colour, 0.42)


def _head(pen: Pen, thing: Thing) -> None:
    pen.disc(-0.08, -0.2, 0.75, thing.colour)
    pen.polygon(
        [(0.5, -0.55), (0.72, -0.05), (0.92, 0.22), (0.7, 0.3), (0.68, 0.62), (0.3, 0.68), (-0.2, 0.2)],
        thing.colour,
    )
    pen.polygon([(-0.62, 0.1), (0.3, 0.3), (0.3, 1), (-0.62, 1)], thing.colour)


def _bulb(pen: Pen, thing: Thing) -> None:
    for x, y in ((0, -1), (0.72, -0.72), (-0.72, -0.72), (1, -0.05), (-1, -0.05)):
        pen.line([(0.78 * x, 0.78 * y - 0.1), (x, y - 0.1)], thing.colour, 0.09)
    pen.disc(0, -0.15, 0.55, thing.colour)
    pen.box(-0.28, 0.25, 0.28, 0.55, thing.colour)
    pen.box(-0.28, 0.5, 0.28, 0.92, "grey", 0.1)


def _iceberg(pen: Pen, thing: Thing) -> None:
    """An iceberg: a small tip over the line at a quarter of its height, the bulk of it below."""
    pen.polygon([(-0.35, -0.5), (-0.12, -0.92), (0.05, -0.78), (0.2, -0.98), (0.4, -0.5)], "#ffffff")
    pen.polygon(
        [(-0.35, -0.5), (0.4, -0.5), (0.85, -0.1), (0.6, 0.45), (0.1, 0.98), (-0.4, 0.6), (-0.85, 0)],
        "#b9dff2",
    )
    pen.polygon([(0.1, -0.5), (0.4, -0.5), (0.85, -0.1), (0.6, 0.45), (0.1, 0.98)], "#93c9e6")


def _control_bar(pen: Pen, thing: Thing) -> None:
    """The crossed wood that a puppet hangs from, held by a hand."""
    pen.box(-0.3, -1, 0.3, -0.45, "black")
    pen.box(-0.34, -0.5, 0.34, 0.3, "skin", 0.2)
    pen.line([(-0.95, 0.3), (0.95, 0.3)], thing.colour, 0.16)
    for x in (-0.18, 0.06, 0.3):
        pen.disc(x - 0.06, 0.26, 0.13, "#d79c72", 0.26)


def _umbrella(pen: Pen, thing: Thing) -> None:
    pen.line([(0, -0.95), (0, 0.8), (0.12, 0.95), (0.26, 0.8)], "black", 0.06)
    pen.segment(0, 0, 1, (180, 360), thing.colour)
    for x in (-0.4, 0, 0.4):
        pen.line([(0, -0.98), (x * 0.8, -0.5), (x, -0.02)], "white", 0.025)


def _raindrop(pen: Pen, thing: Thing) -> None:
    pen.disc(0, 0.35, 0.6, thing.colour)
    pen.polygon([(-0.57, 0.2), (0, -1), (0.57, 0.2)], thing.colour)


def _factory(pen: Pen, thing: Thing) -> None:
    for x in (-0.8, -0.35):
        pen.polygon([(x, -0.95), (x + 0.24, -0.95), (x + 0.3, 0.2), (x - 0.06, 0.2)], thing.colour)
    pen.polygon(
        [(-0.95, 0.1), (0, 0.1), (0, 0.25), (0.45, -0.1), (0.45, 0.25), (0.95, -0.1), (0.95, 1), (-0.95, 1)],
        thing.colour,
    )
    for x in (-0.65, -0.2, 0.25, 0.65):
        pen.box(x - 0.1, 0.5, x + 0.1, 0.7, "yellow")


def _smoke(pen: Pen, thing: Thing) -> None:
    for x, y, r in ((-0.55, 0.15, 0.45), (0, -0.2, 0.6), (0.55, 0.1, 0.45), (0, 0.35, 0.45)):
        pen.disc(x, y, r, thing.colour)


def _bare_tree(pen: Pen, thing: Thing) -> None:
    pen.line([(0, 1), (0, -0.1)], thing.colour, 0.2)
    for x, y in ((-0.7, -0.7), (0.65, -0.8), (-0.15, -0.95)):
        pen.line([(0, 0), (x, y)], thing.colour, 0.1)
    for start, end in (
        ((-0.4, -0.4), (-0.85, -0.3)),
        ((0.35, -0.43), (0.85, -0.3)),
        ((0.0, 0.35), (0.5, 0.1)),
    ):
        pen.line([start, end], thing.colour, 0.07)


def _book(pen: Pen, thing: Thing) -> None:
    pen.polygon(
        [(-1, -0.35), (-0.5, -0.5), (0, -0.3), (0.5, -0.5), (1, -0.35), (1, 0.6), (0, 0.72), (-1, 0.6)],
        thing.colour,
    )
    for side in (-1, 1):
        pen.polygon(
            [
                (0, -0.25),
                (side * 0.5, -0.45),
                (side * 0.92, -0.35),
                (side * 0.92, 0.48),
                (side * 0.5, 0.4),
                (0, 0.6),
            ],
            "white",
        )
        for y in (-0.15, 0.02, 0.19):
            pen.line([(side * 0.18, y + 0.04), (side * 0.8, y - 0.05)], "grey", 0.035)
    pen.line([(0, -0.25), (0, 0.6)], "grey", 0.03)


def _bird(pen: Pen, thing: Thing) -> None:
    pen.polygon(
        [
            (-1, -0.5),
            (-0.4, -0.45),
            (0, 0.1),
            (0.4, -0.45),
            (1, -0.5),
            (0.45, -0.05),
            (0.1, 0.5),
            (-0.1, 0.5),
            (-0.45, -0.05),
        ],
        thing.colour,
    )


def _circle(pen: Pen, thing: Thing) -> None:
    pen.ring(0, 0, 0.94, thing.colour, 0.06)


def _frame(pen: Pen, thing: Thing) -> None:
    """An empty frame round its box."""
    for left, top, right, bottom in ((-1, -1, 1, -0.9), (-1, 0.9, 1, 1), (-1, -1, -0.9, 1), (0.9, -1, 1, 1)):
        pen.box(left, top, right, bottom, thing.colour)
    pen.line([(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9), (-0.9, -0.9)], "#5f4312", 0.012)


def _bubble(pen: Pen, thing: Thing) -> None:
    """A speech bubble whose tail points down to the left."""
    pen.polygon([(-0.6, 0.3), (-0.85, 1), (-0.15, 0.5)], "black")
    pen.disc(0, -0.1, 1, "black", 0.85)
    pen.disc(0, -0.1, 0.94, "white", 0.78)
    pen.polygon([(-0.53, 0.3), (-0.76, 0.85), (-0.18, 0.45)], "white")
    pen.text(0, -0.1, thing.text, 0.75)


PICTOGRAM_SHAPES = painters(
    _fish,
    _hungry_fish,
    _scales,
    _coins,
    _heart,
    _link,
    _burst_link,
    _candle,
    _flame,
    _hourglass,
    _cliff,
    _bridge,
    _phone,
    _bars,
    _sprout,
    _sad_face,
    _mask,
    _ladder,
    _poor_ladder,
    _star,
    _globe,
    _cone,
    _drip,
    _head,
    _bulb,
    _iceberg,
    _control_bar,
    _umbrella,
    _raindrop,
    _factory,
    _smoke,
    _bare_tree,
    _book,
    _bird,
    _circle,
    _frame,
    _bubble,
)


SHAPES: Shapes = {**EVERYDAY_SHAPES, **PICTOGRAM_SHAPES}
"""Every shape that a thing may have, with the function that draws it."""

_OVERSAMPLING = 3
_NIGHT = (0.3, 0.32, 0.45)
"""The factors of red, green and blue at night."""


def render(scene: Scene) -> Image.Image:
    """Render a scene; equal scenes give equal pixels.

    `scene`: the scene. A shape that is not in SHAPES is a KeyError. Returns an RGB image of `scene.side` by
    `scene.side` pixels.
    """
    side = scene.side * _OVERSAMPLING
    image = Image.new("RGB", (side, side), ImageColor.getrgb(PALETTE.get(scene.background, scene.background)))
    canvas = ImageDraw.Draw(image)
    for number, thing in enumerate(scene.things):
        if scene.dark and number == scene.dark:
            image = _darkened(image)
            canvas = ImageDraw.Draw(image)
        SHAPES[thing.shape](Pen(canvas, thing, side), thing)
    return image.reduce(_OVERSAMPLING)


def render_png(scene: Scene) -> bytes:
    return png_bytes(render(scene))


def png_bytes(image: Image.Image) -> bytes:
    stream = BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def _darkened(image: Image.Image) -> Image.Image:
    table = [round(value * share) for share in _NIGHT for value in range(256)]
    return image.point(table)
