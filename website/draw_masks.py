"""Draws docs/images/masks.png: every number of lines in both shapes, on a scene made here.

python website/draw_masks.py
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import get_args

from PIL import Image, ImageDraw, ImageFont

from sightline.builders.mask import COLOURS, Lines, Masking, PixelBox, Shape, hidden_pixels, paint

WIDTH, HEIGHT = 240, 180
BOX = PixelBox(70, 40, 180, 150)
MARGIN, CAPTION = 12, 22


def scene() -> Image.Image:
    """A lamp on a table."""
    image = Image.new("RGB", (WIDTH, HEIGHT), (205, 216, 226))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 140, WIDTH, HEIGHT), fill=(142, 105, 72))
    draw.polygon([(95, 40), (155, 40), (180, 95), (70, 95)], fill=(232, 186, 92))
    draw.rectangle((120, 95, 130, 138), fill=(84, 78, 74))
    draw.ellipse((95, 130, 155, 150), fill=(84, 78, 74))
    return image


def main() -> None:
    """Draw the sheet."""
    shapes, lines = get_args(Shape), get_args(Lines)
    size = (MARGIN + len(lines) * (WIDTH + MARGIN), MARGIN + len(shapes) * (HEIGHT + CAPTION + MARGIN))
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(14)
    for (row, shape), (column, count) in product(enumerate(shapes), enumerate(lines)):
        colour = list(COLOURS)[(row * len(lines) + column) % len(COLOURS)]
        hidden = hidden_pixels(BOX, WIDTH, HEIGHT, Masking(colour, count, shape))
        left, top = MARGIN + column * (WIDTH + MARGIN), MARGIN + row * (HEIGHT + CAPTION + MARGIN)
        sheet.paste(paint(scene(), hidden, colour), (left, top))
        caption = f"{colour}, {count} line{'s' * (count > 1)}, {shape}"
        draw.text((left, top + HEIGHT + 3), caption, "black", font)
    sheet.save(Path(__file__).parents[1] / "docs/images/masks.png", optimize=True)


if __name__ == "__main__":
    main()
