"""Renders a scene to an image."""

from __future__ import annotations

from io import BytesIO

from PIL import Image, ImageColor, ImageDraw

from sightline.builders.scenes.everyday_shapes import EVERYDAY_SHAPES
from sightline.builders.scenes.pen import Pen, Shapes
from sightline.builders.scenes.pictogram_shapes import PICTOGRAM_SHAPES
from sightline.builders.scenes.scene import PALETTE, Scene

SHAPES: Shapes = {**EVERYDAY_SHAPES, **PICTOGRAM_SHAPES}
"""Every shape that a thing may have, with the function that draws it."""

_OVERSAMPLING = 3
_NIGHT = (0.3, 0.32, 0.45)
"""The factors of red, green and blue at night."""


def render(scene: Scene) -> Image.Image:
    """Render a scene; equal scenes give equal pixels.

    Args:
        scene: The scene. A shape that is not in SHAPES is a KeyError.

    Returns:
        An RGB image of `scene.side` by `scene.side` pixels.
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
    """Encode an image as a PNG file."""
    stream = BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def _darkened(image: Image.Image) -> Image.Image:
    table = [round(value * share) for share in _NIGHT for value in range(256)]
    return image.point(table)
