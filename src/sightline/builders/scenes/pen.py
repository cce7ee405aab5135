"""Draws shapes in the coordinates of a thing, independent of its position, size and direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import cos, radians, sin

from PIL import ImageDraw, ImageFont

from sightline.builders.scenes.scene import PALETTE, Point, Thing

Arc = tuple[float, float]
"""A start and an end angle, in degrees clockwise from the right."""


class Pen:
    """Draws one thing: (0, 0) is its centre, -1 and 1 are its edges, y grows downwards.

    Colours are names of the palette or any colour that Pillow reads. Line widths use the same units as
    coordinates. Text stays upright whatever the direction of the thing.
    """

    def __init__(self, canvas: ImageDraw.ImageDraw, thing: Thing, side: int) -> None:
        """Place a pen.

        Args:
            canvas: Where to draw, `side` by `side` pixels.
            side: The size of the canvas in pixels.
        """
        self._canvas = canvas
        self._centre = (thing.x * side, thing.y * side)
        self._half_size = (thing.size * side / 2, thing.size * thing.stretch * side / 2)
        self._rotation = (cos(radians(thing.direction)), sin(radians(thing.direction)))
        self._mirror = -1 if thing.flip else 1

    def polygon(self, points: Sequence[Point], colour: str) -> None:
        """Fill a polygon."""
        self._canvas.polygon([self._pixel(*point) for point in points], fill=_rgb(colour))

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: str, corner: float = 0
    ) -> None:
        """Fill a rectangle."""
        if not corner:
            self.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], colour)
            return
        x0, x1, y0, y1 = left + corner, right - corner, top + corner, bottom - corner
        quarters = [(x1, y1, 0), (x0, y1, 90), (x0, y0, 180), (x1, y0, 270)]
        self.polygon([p for x, y, a in quarters for p in _arc(x, y, corner, corner, a, a + 90)], colour)

    def disc(self, x: float, y: float, r: float, colour: str, ry: float | None = None) -> None:
        """Fill a circle or an ellipse.

        Args:
            ry: Its vertical radius; None for a circle.
        """
        self.polygon(_arc(x, y, r, r if ry is None else ry, 0, 360), colour)

    def segment(self, x: float, y: float, r: float, arc: Arc, colour: str) -> None:
        """Fill the part of a disc between an arc and its chord."""
        self.polygon(_arc(x, y, r, r, *arc), colour)

    def ring(self, x: float, y: float, r: float, colour: str, width: float, arc: Arc = (0, 360)) -> None:
        """Draw the line of a circle or of an arc."""
        self.line(_arc(x, y, r, r, *arc), colour, width)

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        """Draw a line with round ends and bends."""
        pixels = [self._pixel(*point) for point in points]
        thick = max(1, round(width * self._half_size[0]))
        self._canvas.line(pixels, fill=_rgb(colour), width=thick, joint="curve")
        for x, y in (pixels[0], pixels[-1]):
            r = (thick - 1) / 2
            self._canvas.ellipse((x - r, y - r, x + r, y + r), fill=_rgb(colour))

    def text(self, x: float, y: float, text: str, height: float, colour: str = "black") -> None:
        font = _font(max(6, round(height * self._half_size[1])))
        self._canvas.text(self._pixel(x, y), text, fill=_rgb(colour), font=font, anchor="mm")

    def _pixel(self, x: float, y: float) -> Point:
        across, down = x * self._mirror * self._half_size[0], y * self._half_size[1]
        cosine, sine = self._rotation
        return (
            self._centre[0] + across * cosine - down * sine,
            self._centre[1] + across * sine + down * cosine,
        )


def _arc(x: float, y: float, rx: float, ry: float, start: float, end: float) -> list[Point]:
    steps = max(8, round(abs(end - start) / 7.5))
    angles = [radians(start + (end - start) * i / steps) for i in range(steps + 1)]
    return [(x + rx * cos(a), y + ry * sin(a)) for a in angles]


def _rgb(colour: str) -> str:
    return PALETTE.get(colour, colour)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


Painter = Callable[[Pen, Thing], None]
Shapes = Mapping[str, Painter]


def painters(*functions: Painter) -> Shapes:
    """Name drawing functions after themselves, without the leading underscore.

    Returns:
        Shape -> function.
    """
    return {function.__name__.removeprefix("_"): function for function in functions}
