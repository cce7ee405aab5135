"""The content of a synthetic image: things with shape, colour, position, size, direction and text."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

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
