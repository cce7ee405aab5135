"""A pen that draws in a thing's own coordinates, wherever the thing stands and however it is turned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import cos, radians, sin

from PIL import ImageDraw, ImageFont

from sightline.builders.scenes.scene import PALETTE, Point, Thing


class Pen:
    """Draws one thing: (0, 0) is its middle, -1 and 1 are its edges, y grows downwards.

    Colours are names of the palette or anything that Pillow reads; widths are in the same units as
    coordinates. What it writes stands upright whatever the direction of the thing.
    """

    def __init__(self, canvas: ImageDraw.ImageDraw, thing: Thing, side: int) -> None:
        """A pen for `thing` on a canvas of `side` pixels square."""
        self._canvas = canvas
        self._middle = (thing.x * side, thing.y * side)
        self._reach = (thing.size * side / 2, thing.size * thing.stretch * side / 2)
        self._turn = (cos(radians(thing.direction)), sin(radians(thing.direction)))
        self._hand = -1 if thing.flip else 1

    def area(self, points: Sequence[Point], colour: str) -> None:
        """A filled polygon."""
        self._canvas.polygon([self._pixel(*point) for point in points], fill=_rgb(colour))

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: str, corner: float = 0
    ) -> None:
        """A filled rectangle, its corners rounded by `corner`."""
        if not corner:
            self.area([(left, top), (right, top), (right, bottom), (left, bottom)], colour)
            return
        x0, x1, y0, y1 = left + corner, right - corner, top + corner, bottom - corner
        quarters = [(x1, y1, 0), (x0, y1, 90), (x0, y0, 180), (x1, y0, 270)]
        self.area([p for x, y, a in quarters for p in _arc(x, y, corner, corner, a, a + 90)], colour)

    def disc(self, x: float, y: float, r: float, colour: str, ry: float | None = None) -> None:
        """A filled circle of radius `r`, or an ellipse `ry` high."""
        self.area(_arc(x, y, r, r if ry is None else ry, 0, 360), colour)

    def slice(self, x: float, y: float, r: float, start: float, end: float, colour: str) -> None:
        """The part of a disc between two angles, in degrees clockwise from the right; cut by the chord."""
        self.area(_arc(x, y, r, r, start, end), colour)

    def ring(
        self, x: float, y: float, r: float, colour: str, width: float, start: float = 0, end: float = 360
    ) -> None:
        """A circle's line, or an arc of it between two angles."""
        self.line(_arc(x, y, r, r, start, end), colour, width)

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        """A line through the points with round ends and bends."""
        pixels = [self._pixel(*point) for point in points]
        thick = max(1, round(width * self._reach[0]))
        self._canvas.line(pixels, fill=_rgb(colour), width=thick, joint="curve")
        for x, y in (pixels[0], pixels[-1]):
            r = (thick - 1) / 2
            self._canvas.ellipse((x - r, y - r, x + r, y + r), fill=_rgb(colour))

    def words(self, x: float, y: float, text: str, height: float, colour: str = "black") -> None:
        """Writing centred on (x, y), its capitals about 0.7 `height` high."""
        font = _font(max(6, round(height * self._reach[1])))
        self._canvas.text(self._pixel(x, y), text, fill=_rgb(colour), font=font, anchor="mm")

    def _pixel(self, x: float, y: float) -> Point:
        across, down = x * self._hand * self._reach[0], y * self._reach[1]
        cosine, sine = self._turn
        return (
            self._middle[0] + across * cosine - down * sine,
            self._middle[1] + across * sine + down * cosine,
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
