"""What is in a drawn image: things with shape, colour, place, size, direction and writing."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

Point = tuple[float, float]
"""Across and down, as shares of the image: (0, 0) is its top left corner, (1, 1) its bottom right one."""

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
"""The colours that a thing may have, by the name that a question calls them."""

TINTS = ("#f7f3ea", "#e9f2f8", "#eef5e8", "#fbeff0", "#f1edf7", "#ffffff")
"""Pale backgrounds on which every colour of the palette but white stands out."""


class Thing(Struct, frozen=True):
    """One thing in an image.

    `shape` names the function that draws it. `at` is its middle; `size` its width as a share of the
    image's, and its height `size * stretch`. `direction` is in degrees clockwise from upright, and
    `flip` mirrors it left to right before it is turned. `text` is what is written on it.
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
        """How far across the image its middle is, 0 (left) to 1 (right)."""
        return self.at[0]

    @property
    def y(self) -> float:
        """How far down the image its middle is, 0 (top) to 1 (bottom)."""
        return self.at[1]


class Scene(Struct, frozen=True):
    """An image before it is drawn: things from back to front on a plain background, `side` pixels square.

    The first `dark` things, and the background, lie in the dark of night.
    """

    things: tuple[Thing, ...]
    background: str = "paper"
    side: int = 256
    dark: int = 0


def placed(
    things: Iterable[Thing], *, centre: Point = (0.5, 0.5), scale: float = 1.0, mirror: bool = False
) -> tuple[Thing, ...]:
    """Things laid out in a whole image, moved together: scaled about its middle, which comes to `centre`.

    >>> placed([Thing("tree", (0.75, 0.5), 0.2)], scale=0.5, mirror=True)[0].at
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
