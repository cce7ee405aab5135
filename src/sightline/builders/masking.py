"""A mask: its colour, lines and shape, and the pixels that it hides (MM-R3 3.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

Colour = Literal["red", "blue", "green", "yellow", "white", "black"]
Lines = Literal[1, 3, 5, 7]
Shape = Literal["rectangle", "ellipse"]

COLOURS: Mapping[Colour, tuple[int, int, int]] = {
    "red": (255, 0, 0),
    "blue": (0, 0, 255),
    "green": (0, 255, 0),
    "yellow": (255, 255, 0),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
}
"""The palette of section 3.1 as RGB (0-255). The paper prints only names; these are the pure colours."""

VARIANTS = ("m0", "m1", "m2")


class Masking(Struct, frozen=True, order=True):
    """How an object is masked: `lines` bands of a colour within a shape."""

    colour: Colour
    lines: Lines
    shape: Shape


MASKINGS = tuple(Masking(*parts) for parts in product(get_args(Colour), get_args(Lines), get_args(Shape)))
"""All 48 maskings."""


class PixelBox(Struct, frozen=True):
    """A rectangle of whole pixels; `right` and `bottom` are exclusive."""

    left: int
    top: int
    right: int
    bottom: int


def whole_pixels(box: tuple[float, float, float, float], width: int, height: int) -> PixelBox | None:
    """The pixels that lie wholly inside a box and the image.

    Args:
        box: Left, top, width and height in pixels; fractions are allowed.
        width, height: Size of the image in pixels.

    Returns:
        The rectangle of pixels; None if there is no such pixel.

    >>> whole_pixels((-3.5, 1.25, 8.0, 2.75), 10, 10)
    PixelBox(left=0, top=2, right=4, bottom=4)
    """
    left, top, wide, high = box
    # Numbers near 1e308 add up to infinity, which has no floor.
    right, bottom = (min(max(end, 0), side) for end, side in ((left + wide, width), (top + high, height)))
    inside = PixelBox(math.ceil(max(left, 0)), math.ceil(max(top, 0)), math.floor(right), math.floor(bottom))
    return inside if inside.left < inside.right and inside.top < inside.bottom else None


def pattern(width: int, height: int, lines: int, shape: Shape) -> NDArray[np.bool_]:
    """The pixels of a box that a masking paints: those whose centre lies in a band, and in the ellipse.

    Integer arithmetic makes the result the same on every machine.

    Args:
        width, height: Size of the box in pixels.

    Returns:
        A mask of shape (height, width), True for painted pixels.
    """
    import numpy as np

    rows = 2 * np.arange(height, dtype=np.int64)[:, None] + 1
    columns = 2 * np.arange(width, dtype=np.int64)[None, :] + 1
    bands: NDArray[np.bool_] = (rows * (2 * lines - 1) // (2 * height)) % 2 == 0
    if shape == "rectangle":
        return np.broadcast_to(bands, (height, width)).copy()
    across, down = (columns - width) * height, (rows - height) * width
    inside: NDArray[np.bool_] = across * across + down * down <= (width * height) ** 2
    return bands & inside


def hidden_pixels(box: PixelBox, width: int, height: int, masking: Masking) -> NDArray[np.bool_]:
    """The pixels of an image that a masking paints, all of them in a box.

    Args:
        width, height: Size of the image in pixels.

    Returns:
        A mask of shape (height, width), True for painted pixels.
    """
    import numpy as np

    hidden = np.zeros((height, width), dtype=bool)
    wide, high = box.right - box.left, box.bottom - box.top
    hidden[box.top : box.bottom, box.left : box.right] = pattern(wide, high, masking.lines, masking.shape)
    return hidden


def paint(image: Image, hidden: NDArray[np.bool_], colour: Colour) -> Image:
    """Paint pixels of an image.

    Args:
        hidden: Mask of the pixels to paint, of shape (height, width).

    Returns:
        A copy with these pixels in that colour.
    """
    import numpy as np
    from PIL import Image

    values = np.array(image)
    values[hidden] = COLOURS[colour]
    return Image.fromarray(values)
