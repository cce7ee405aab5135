"""Styles for synthetic scenes that need no network weights: each is a fixed image operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PIL import Image, ImageChops, ImageFilter, ImageOps


def grayscale(image: Image.Image) -> Image.Image:
    """Remove the colours."""
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
