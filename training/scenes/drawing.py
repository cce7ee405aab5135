"""Synthetic images: things and how a pen draws them, styles of images, and phrasings of questions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import cos, radians, sin
from random import Random
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont, ImageOps

Point = tuple[float, float]
"""Horizontal and vertical position as shares of the image: (0, 0) is the top left corner."""

PALETTE = {
    "red": "#d7301f",
    "blue": "#2166c4",
    "green": "#2e9e4f",
    "yellow": "#f2c417",
    "orange": "#ee7f1a",
    "purple": "#7d3fa8",
    "pink": "#f09ab8",
    "brown": "#8a5a34",
    "black": "#222222",
    "grey": "#9a9fa6",
    "white": "#ffffff",
    "skin": "#e8b48c",
    "sky": "#cfe6f5",
    "grass": "#a9cf87",
    "sand": "#ecdcb0",
    "water": "#5d9fd0",
    "gold": "#e0a72e",
    "slate": "#46525e",
    "paper": "#f7f3ea",
}
"""The colours of things, by the names that questions use."""

TINTS = ("#f7f3ea", "#e9f2f8", "#eef5e8", "#fbeff0", "#f1edf7", "#ffffff")
"""Pale backgrounds that contrast with every colour of the palette except white."""


class Thing(Struct, frozen=True):
    """One thing in an image.

    `shape` names the function that draws it. `at` is its centre. Its width is `size`, a share of the image's
    width, and its height `size * stretch`. `direction` is in degrees clockwise from upright; `flip` mirrors
    the thing horizontally before it is rotated. `text` is the text on it.
    """

    shape: str
    at: Point
    size: float
    colour: str = "black"
    direction: float = 0.0
    flip: bool = False
    text: str = ""
    stretch: float = 1.0

    @property
    def x(self) -> float:
        """The horizontal position of its centre, 0 (left) to 1 (right)."""
        return self.at[0]

    @property
    def y(self) -> float:
        """The vertical position of its centre, 0 (top) to 1 (bottom)."""
        return self.at[1]


class Scene(Struct, frozen=True):
    """An image before it is rendered: things from back to front on a plain background.

    The image has `side` by `side` pixels. The background and the first `dark` things are darkened.
    """

    things: tuple[Thing, ...]
    background: str = "paper"
    side: int = 256
    dark: int = 0


def transformed(
    things: Iterable[Thing], *, centre: Point = (0.5, 0.5), scale: float = 1.0, mirror: bool = False
) -> tuple[Thing, ...]:
    """Scale, move and mirror things as a group.

    >>> transformed([Thing("tree", (0.75, 0.5), 0.2)], scale=0.5, mirror=True)[0].at
    (0.375, 0.5)
    """
    side = -scale if mirror else scale
    return tuple(
        replace(
            thing,
            at=(
                round(centre[0] + side * (thing.x - 0.5), 4),
                round(centre[1] + scale * (thing.y - 0.5), 4),
            ),
            size=round(thing.size * scale, 4),
            direction=-thing.direction % 360 if mirror else thing.direction,
            flip=thing.flip != mirror,
        )
        for thing in things
    )


# -- Draws shapes in the coordinates of a thing, independent of its position, size and direction

Arc = tuple[float, float]
"""A start and an end angle, in degrees clockwise from the right."""


class Pen:
    """Draws one thing: (0, 0) is its centre, -1 and 1 are its edges, y grows downwards.

    Colours are names of the palette or any colour that Pillow reads. Line widths use the same units as
    coordinates. Text stays upright whatever the direction of the thing.
    """

    def __init__(self, canvas: ImageDraw.ImageDraw, thing: Thing, side: int) -> None:
        """Place a pen."""
        self._canvas = canvas
        self._centre = (thing.x * side, thing.y * side)
        self._half_size = (thing.size * side / 2, thing.size * thing.stretch * side / 2)
        self._rotation = (cos(radians(thing.direction)), sin(radians(thing.direction)))
        self._mirror = -1 if thing.flip else 1

    def polygon(self, points: Sequence[Point], colour: str) -> None:
        self._canvas.polygon([self._pixel(*point) for point in points], fill=_rgb(colour))

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: str, corner: float = 0
    ) -> None:
        if not corner:
            self.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], colour)
            return
        x0, x1, y0, y1 = left + corner, right - corner, top + corner, bottom - corner
        quarters = [(x1, y1, 0), (x0, y1, 90), (x0, y0, 180), (x1, y0, 270)]
        self.polygon([p for x, y, a in quarters for p in _arc(x, y, corner, corner, a, a + 90)], colour)

    def disc(self, x: float, y: float, r: float, colour: str, ry: float | None = None) -> None:
        """Fill a circle or an ellipse. `ry`: its vertical radius; None for a circle."""
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
    """Name drawing functions after themselves, without the leading underscore: shape -> function."""
    return {function.__name__.removeprefix("_"): function for function in functions}


# -- Styles for synthetic scenes that need no network weights: each is a fixed image operation


def grayscale(image: Image.Image) -> Image.Image:
    return ImageOps.grayscale(image).convert("RGB")


def candy(image: Image.Image) -> Image.Image:
    """Swap red, green and blue, and reduce them to a few bright tones."""
    red, green, blue = image.split()
    return ImageOps.posterize(Image.merge("RGB", (green, blue, red)), 2).filter(ImageFilter.MedianFilter(5))


def mosaic(image: Image.Image) -> Image.Image:
    """Split the image into square tiles of one colour, with dark joints and a warm tint."""
    width, height = image.size
    tile = max(2, round(width / 24))
    small = image.resize((-(-width // tile), -(-height // tile)), Image.Resampling.BOX)
    tiles = small.resize((small.width * tile, small.height * tile), Image.Resampling.NEAREST)
    joint = Image.new("L", (tile, tile), 255)
    joint.paste(140, (0, 0, tile, max(1, tile // 8)))
    joint.paste(140, (0, 0, max(1, tile // 8), tile))
    joints = Image.new("L", tiles.size)
    for left in range(0, tiles.width, tile):
        for top in range(0, tiles.height, tile):
            joints.paste(joint, (left, top))
    laid = ImageChops.multiply(tiles, Image.merge("RGB", (joints, joints, joints))).crop(
        (0, 0, width, height)
    )
    return _tinted(laid, (1.1, 0.92, 0.72))


def udnie(image: Image.Image) -> Image.Image:
    """Invert the image, mute its colours and add bright outlines."""
    flat = image.filter(ImageFilter.MedianFilter(5))
    edges = ImageOps.grayscale(image.filter(ImageFilter.FIND_EDGES))
    muted = ImageOps.invert(flat).point(lambda value: 20 + value * 0.55)
    lines = ImageOps.colorize(edges, "black", "#ffb040")
    return ImageChops.add(muted, lines)


STYLES: Mapping[str, Callable[[Image.Image], Image.Image]] = {
    "candy": candy,
    "mosaic": mosaic,
    "udnie": udnie,
    "grayscale": grayscale,
}
"""Imitations of the four styles of MM-R3 (3.2) under the same names. The paper uses networks."""


def _tinted(image: Image.Image, shares: tuple[float, float, float]) -> Image.Image:
    return image.point([min(255, round(value * share)) for share in shares for value in range(256)])


# -- How questions are phrased, and which phrasings and combinations training must not use

Tier = Literal["common", "rare", "unseen"]

RARE = 0.04
"""The share of training questions that use a rare phrasing."""
HELD_OUT = 6
"""One combination of attributes in this many is held out for tests."""
SALT = 623
"""Chosen by search: every side, thing, colour, idea and fate is among the held-out ones, none too often."""


class Phrasings(Struct, frozen=True):
    """The ways to phrase one text: those that training uses often, rarely and never."""

    common: tuple[str, ...]
    rare: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.common, *self.rare, *self.unseen)

    def tier(self, phrase: str) -> Tier:
        """Look up how often training uses a phrasing."""
        tiers: dict[str, Tier] = {
            **dict.fromkeys(self.unseen, "unseen"),
            **dict.fromkeys(self.rare, "rare"),
            **dict.fromkeys(self.common, "common"),
        }
        return tiers[phrase]

    def choose_for_training(self, random: Random) -> str:
        return random.choice(self.rare if self.rare and random.random() < RARE else self.common)

    def choose_for_test(self, random: Random) -> str:
        """Sample from all phrasings."""
        in_training = (*self.common, *self.rare)
        return random.choice(self.unseen if self.unseen and random.random() < 0.5 else in_training)

    def fill(self, **slots: str) -> Phrasings:
        common, rare, unseen = (
            tuple(phrase.format(**slots) for phrase in phrases)
            for phrases in (self.common, self.rare, self.unseen)
        )
        return Phrasings(common, rare, unseen)


class Fact(Struct, frozen=True):
    """A question about an image with its answer.

    `kind` is the type of the question; `combination` names the attributes of the image that it combines.
    """

    kind: str
    questions: Phrasings
    answer: str
    combination: str = ""


def is_held_out(combination: str) -> bool:
    """Tell whether a combination of attributes is held out for tests."""
    return hashlib.sha256(f"{SALT} {combination}".encode()).digest()[0] % HELD_OUT == 0
