"""From a scene to its image."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from types import FunctionType

from PIL import Image, ImageColor, ImageDraw

from sightline.builders.scenes import emblems, shapes
from sightline.builders.scenes.pen import Pen
from sightline.builders.scenes.scene import PALETTE, Scene, Thing

SHAPES: dict[str, Callable[[Pen, Thing], None]] = {
    name: painter
    for module in (shapes, emblems)
    for name, painter in vars(module).items()
    if isinstance(painter, FunctionType)
    and painter.__module__ == module.__name__
    and not name.startswith("_")
}
"""Every shape that a thing may have, and the function that draws it: the public functions of two modules."""

_FINENESS = 3
_NIGHT = (0.3, 0.32, 0.45)
"""What is left by night of red, green and blue."""


def draw(scene: Scene) -> Image.Image:
    """The image of a scene: RGB, `scene.side` pixels square; the same scene gives the same pixels.

    Raises KeyError where a thing's shape is none of `SHAPES`.
    """
    side = scene.side * _FINENESS
    image = Image.new("RGB", (side, side), ImageColor.getrgb(PALETTE.get(scene.background, scene.background)))
    canvas = ImageDraw.Draw(image)
    for number, thing in enumerate(scene.things):
        if scene.dark and number == scene.dark:
            image = _by_night(image)
            canvas = ImageDraw.Draw(image)
        SHAPES[thing.shape](Pen(canvas, thing, side), thing)
    return image.reduce(_FINENESS)


def png(scene: Scene) -> bytes:
    """The image of a scene as a PNG file."""
    return png_of(draw(scene))


def png_of(image: Image.Image) -> bytes:
    """An image as a PNG file."""
    stream = BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def _by_night(image: Image.Image) -> Image.Image:
    table = [round(value * share) for share in _NIGHT for value in range(256)]
    return image.point(table)
