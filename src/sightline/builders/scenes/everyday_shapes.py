"""Draws everyday things: people, houses, vehicles, clocks, cups; one function per shape."""

from __future__ import annotations

from math import cos, radians, sin

from sightline.builders.scenes.pen import Pen, painters
from sightline.builders.scenes.scene import Thing


def _band(pen: Pen, thing: Thing) -> None:
    """A plain rectangle that fills its box: ground, sky, a panel, a frame's inside."""
    pen.box(-1, -1, 1, 1, thing.colour)


def _words(pen: Pen, thing: Thing) -> None:
    """Writing alone; its height is a quarter of its box."""
    pen.text(0, 0, thing.text, 0.5, thing.colour)


def _person(pen: Pen, thing: Thing) -> None:
    """A person in a shirt of the thing's colour, facing the viewer."""
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
    """A wrapped present with a bow."""
    pen.box(-0.8, -0.35, 0.8, 0.95, thing.colour)
    pen.box(-0.92, -0.5, 0.92, -0.15, thing.colour)
    pen.box(-0.14, -0.5, 0.14, 0.95, "gold")
    pen.disc(-0.32, -0.68, 0.3, "gold", 0.2)
    pen.disc(0.32, -0.68, 0.3, "gold", 0.2)


def _house(pen: Pen, thing: Thing) -> None:
    """A house with a red roof, a door and a window."""
    pen.box(-0.75, -0.15, 0.75, 1, "#f3e3c3")
    pen.polygon([(-0.98, -0.1), (0, -0.98), (0.98, -0.1)], "#b5432f")
    pen.box(-0.5, 0.3, -0.08, 1, "brown")
    pen.box(0.2, 0.2, 0.56, 0.56, "water")


def _tree(pen: Pen, thing: Thing) -> None:
    """A tree with a round crown of the thing's colour."""
    pen.box(-0.14, 0.1, 0.14, 1, "brown")
    for x, y, r in ((-0.4, -0.1, 0.45), (0.4, -0.1, 0.45), (0, -0.48, 0.5), (0, 0.02, 0.45)):
        pen.disc(x, y, r, thing.colour)


def _tower(pen: Pen, thing: Thing) -> None:
    """A stone tower with battlements."""
    pen.box(-0.4, -0.6, 0.4, 1, thing.colour)
    for x in (-0.55, -0.16, 0.23):
        pen.box(x, -1, x + 0.32, -0.55, thing.colour)
    pen.box(-0.55, -0.72, 0.55, -0.4, thing.colour)
    pen.box(-0.16, 0.45, 0.16, 1, "#3b3f46", 0.1)
    pen.box(-0.08, -0.2, 0.08, 0.15, "#3b3f46")


def _tent(pen: Pen, thing: Thing) -> None:
    """A tent with its flap open."""
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
    """The sun with its rays."""
    for angle in range(0, 360, 30):
        x, y = cos(radians(angle)), sin(radians(angle))
        pen.line([(0.72 * x, 0.72 * y), (0.97 * x, 0.97 * y)], thing.colour, 0.1)
    pen.disc(0, 0, 0.6, thing.colour)


def _sea(pen: Pen, thing: Thing) -> None:
    """Water with waves."""
    pen.box(-1, -1, 1, 1, "water")
    for row, y in enumerate((-0.6, -0.1, 0.4, 0.85)):
        for column in range(4):
            left = -0.7 + 0.4 * column + 0.2 * (row % 2)
            pen.line([(left - 0.1, y), (left, y + 0.07), (left + 0.1, y)], "#b9d9ee", 0.02)


def _ball(pen: Pen, thing: Thing) -> None:
    """A ball with a seam."""
    pen.disc(0, 0, 1, thing.colour)
    pen.ring(-1.05, 0, 0.9, "white", 0.14, (-52, 52))
    pen.ring(1.05, 0, 0.9, "white", 0.14, (128, 232))


def _door(pen: Pen, thing: Thing) -> None:
    """A door with a number plate."""
    pen.box(-0.62, -0.98, 0.62, 1, "#5b4636")
    pen.box(-0.54, -0.93, 0.54, 1, thing.colour)
    pen.box(-0.32, -0.72, 0.32, -0.36, "white", 0.06)
    pen.text(0, -0.54, thing.text, 0.32)
    pen.disc(0.4, 0.12, 0.07, "gold")


def _card(pen: Pen, thing: Thing) -> None:
    """An invitation with a date written on it."""
    pen.box(-1, -1, 1, 1, "white", 0.06)
    pen.box(-1, -1, 1, -0.62, thing.colour, 0.06)
    pen.text(0, 0.2, thing.text, 0.62)


def _cup(pen: Pen, thing: Thing) -> None:
    """A cup with a handle."""
    pen.ring(0.55, 0.0, 0.34, thing.colour, 0.16)
    pen.polygon([(-0.75, -0.7), (0.6, -0.7), (0.45, 0.8), (-0.6, 0.8)], thing.colour)
    pen.disc(-0.075, -0.7, 0.675, "#eeeeee", 0.16)


def _finger(pen: Pen, thing: Thing) -> None:
    """A hand whose one finger points down."""
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
