"""Draws a preview sheet of groups: a row per group, the original first."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from sightline.builders.folder import open_upright, save
from sightline.errors import visible
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, read_groups
from sightline.images import BadImage

if TYPE_CHECKING:
    from PIL.Image import Image


LONGEST = 4000
"""Largest side of a sheet in pixels."""
CELL, MIN_CELL, GAP = 240, 90, 12
"""Largest and smallest side of an image, and the gap between images, in pixels."""
SIZE, LINE = 14, 18
"""Font size and line height in pixels."""
LINES, HEAD = 4, 2
"""Text lines below an image, and above a row."""


class _SheetLayout(Struct, frozen=True):
    """The numbers of rows and columns, and the side of an image in pixels."""

    rows: int
    columns: int
    cell: int

    @property
    def row_height(self) -> int:
        """Pixels from the top of a row to the top of the next."""
        return (HEAD + LINES) * LINE + self.cell + 2 * GAP

    @property
    def size(self) -> tuple[int, int]:
        return GAP + self.columns * (self.cell + GAP), GAP + self.rows * self.row_height


def draw_folder(folder: Path, path: Path, *, rows: int = 8, seed: int = 0) -> set[str]:
    """Draw some groups of a built folder on one PNG of at most 4,000 pixels a side.

    A row shows the group's id, its references and its prompt. Below each image are its variant and labels,
    and its prompt if the prompts differ. The same folder, seed and fonts of the system give the same bytes.
    """
    return draw_lines(read_groups(folder / "groups.jsonl"), folder, path, rows=rows, seed=seed)


def draw_lines(
    lines: Iterable[GroupLine], folder: Path, path: Path, *, rows: int = 8, seed: int | None = None
) -> set[str]:
    """Draw groups that need not be in a groups file; without a `seed` for the choice, the first ones."""
    groups = by_group(lines)
    names = list(groups)
    fitting = _layout(rows, max(len(lines) for lines in groups.values()))
    count = min(fitting.rows, len(names))
    chosen: Sequence[int] = range(count)
    if seed is not None:
        chosen = sorted(Random(f"preview {seed}").sample(range(len(names)), count))
    sheet = _PreviewSheet(_SheetLayout(len(chosen), fitting.columns, fitting.cell), folder)
    for row, number in enumerate(chosen):
        sheet.draw_group(row, groups[names[number]])
    save(sheet.canvas, path, "png")
    return sheet.font.missing


def _layout(rows: int, variants: int) -> _SheetLayout:
    """As many rows and columns as fit, with the largest images that fit."""
    columns = min(variants, (LONGEST - GAP) // (MIN_CELL + GAP))
    cell = min(CELL, (LONGEST - GAP) // columns - GAP)
    one = _SheetLayout(1, columns, cell)
    return _SheetLayout(max(1, min(rows, (LONGEST - GAP) // one.row_height)), columns, cell)


class _PreviewSheet:
    """A canvas with a layout."""

    def __init__(self, layout: _SheetLayout, folder: Path) -> None:
        from PIL import Image, ImageDraw

        self._layout = layout
        self._folder = folder
        self.canvas = Image.new("RGB", layout.size, "white")
        self._draw = ImageDraw.Draw(self.canvas)
        self.font = LabelFont(SIZE)

    def draw_group(self, row: int, lines: Sequence[GroupLine]) -> None:
        top = GAP + row * self._layout.row_height
        ordered = sorted(lines, key=lambda line: line.variant != ORIGINAL)
        drawn = ordered[: self._layout.columns]
        prompts = {line.prompt for line in drawn}
        width = self._layout.size[0] - 2 * GAP
        self._write((GAP, top), _title(ordered, len(drawn)), width)
        if len(prompts) == 1:
            self._write((GAP, top + LINE), drawn[0].prompt, width, colour="dimgray")
        for column, line in enumerate(drawn):
            labels = "; ".join(_distinct_labels(line, drawn))
            caption = f"{line.variant}: {labels}" if labels else line.variant
            if len(prompts) > 1:
                caption += f" | {line.prompt}"
            left = GAP + column * (self._layout.cell + GAP)
            self._draw_image((left, top + HEAD * LINE), line, caption)

    def _draw_image(self, position: tuple[int, int], line: GroupLine, caption: str) -> None:
        (left, top), cell = position, self._layout.cell
        image, height = _thumbnail(line, self._folder, cell), cell
        if isinstance(image, str):
            self._draw.rectangle((left, top, left + cell - 1, top + cell - 1), outline="silver")
            inside, lines = (left + GAP // 2, top + GAP // 2), (cell - GAP) // LINE
            self._write(inside, image, cell - GAP, lines=lines, colour="firebrick")
        else:
            self.canvas.paste(image, (left, top))
            height = image.height
        self._write((left, top + height + 4), caption, cell, lines=LINES)

    def _write(
        self, position: tuple[int, int], text: str, width: int, *, lines: int = 1, colour: str = "black"
    ) -> None:
        """Write a text in lines of a width in pixels; dots replace what does not fit."""
        left, top = position
        for number, line in enumerate(_wrapped(visible(" ".join(text.split())), self.font, width, lines)):
            self.font.draw(self._draw, (left, top + number * LINE), line, colour)


def _title(lines: Sequence[GroupLine], drawn: int) -> str:
    references = " | ".join(dict.fromkeys(one for line in lines for one in line.references))
    more = f" ({len(lines) - drawn} more variants)" if len(lines) > drawn else ""
    return f"{lines[0].group}{more}, reference: {references or 'none'}"


def _distinct_labels(line: GroupLine, lines: Sequence[GroupLine]) -> list[str]:
    """The labels of a line without those that all lines of its group share; all labels of a single line."""
    return [
        f"{name} {value if isinstance(value, str) else ', '.join(value)}"
        for name, value in line.labels.items()
        if len(lines) == 1 or any(other.labels.get(name) != value for other in lines)
    ]


def _thumbnail(line: GroupLine, folder: Path, side: int) -> Image | str:
    """The line's first image as a thumbnail, or the reason why there is none."""
    from PIL import Image

    if not line.images:
        return "no image"
    try:
        image = open_upright(folder / line.images[0])
    except BadImage as error:
        return str(error).removeprefix(f"{folder}/")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image


def _wrapped(text: str, font: LabelFont, width: int, most: int) -> list[str]:
    lines: list[str] = []
    rest = text
    while rest and len(lines) < most:
        length = _fitting(rest, font, width)
        if length < len(rest) and len(lines) == most - 1:
            return [*lines, rest[: max(1, _fitting(rest, font, width - font.getlength("...")))] + "..."]
        if length < len(rest) and " " in rest[: length + 1].strip():
            length = rest.rindex(" ", 0, length + 1)
        lines.append(rest[:length])
        rest = rest[length:].lstrip()
    return lines


def _fitting(text: str, font: LabelFont, width: float) -> int:
    """How many characters of a text fit into a width; at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if font.getlength(text[:middle]) <= width else (low, middle - 1)
    return low


# -- Draws labels in any script: each character in the first font that has it, of Pillow's and the
#    system's

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

NO_GLYPH = "\U0010ffff"
"""A character that no font has: fonts draw it as their mark for a missing glyph."""

REPLACEMENT = "?"
"""What is drawn for a character that no font has."""


class LabelFont:
    """Pillow's own font, and fonts of the system for the characters that it lacks."""

    def __init__(self, size: int, folders: Sequence[Path] | None = None) -> None:
        """Load Pillow's own font."""
        from PIL import ImageFont

        self.missing: set[str] = set()
        self._size = size
        self._folders = font_folders() if folders is None else folders
        self._own: Font = ImageFont.load_default(size)
        self._font_of: dict[str, Font | None] = {}

    def getlength(self, text: str) -> float:
        """The width of a text in pixels."""
        return sum(font.getlength(part) for part, font in self._parts(text))

    def draw(self, draw: ImageDraw, position: tuple[float, float], text: str, colour: str) -> None:
        """Draw a text with its upper left corner at a position in pixels."""
        from PIL.ImageFont import FreeTypeFont

        left, top = position
        # Fonts differ in height: their baselines must agree.
        ascent = self._own.getmetrics()[0] if isinstance(self._own, FreeTypeFont) else 0
        for part, font in self._parts(text):
            anchored = isinstance(font, FreeTypeFont)
            place = (left, top + ascent) if anchored else (left, top)
            draw.text(place, part, fill=colour, font=font, anchor="ls" if anchored else None)
            left += font.getlength(part)

    def _parts(self, text: str) -> Iterator[tuple[str, Font]]:
        for font, characters in groupby(text, self._font_for):
            part = "".join(characters)
            if font is None:
                self.missing.update(part)
                yield REPLACEMENT * len(part), self._own
            else:
                yield part, font

    def _font_for(self, character: str) -> Font | None:
        if character not in self._font_of:
            fonts = (self._own, *self._system_fonts) if not _has(self._own, character) else (self._own,)
            self._font_of[character] = next((font for font in fonts if _has(font, character)), None)
        return self._font_of[character]

    @cached_property
    def _system_fonts(self) -> list[FreeTypeFont]:
        """The upright fonts of normal weight, the same on every call."""
        from PIL import ImageFont

        fonts = []
        for path in _font_files(self._folders):
            try:
                fonts.append(ImageFont.truetype(path, self._size))
            except OSError:  # a bitmap font, or a damaged file
                continue
        return fonts


def font_folders() -> list[Path]:
    """List the folders in which operating systems keep fonts."""
    home = Path.home()
    if sys.platform == "win32":
        return [Path(os.environ.get("WINDIR", r"C:\Windows")) / "Fonts"]
    if sys.platform == "darwin":
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    shared = [Path("/usr/share/fonts"), Path("/usr/local/share/fonts")]
    return [*shared, home / ".local/share/fonts", home / ".fonts"]


def describe_missing(characters: set[str]) -> str:
    """Describe characters that no font has, for the user.

    >>> describe_missing({"\\u4e2d"})
    "no font has 1 of the characters, such as 中 (U+4E2D): drawn as '?'; install a font that has them"
    """
    if not characters:
        return ""
    first = min(characters)
    return (
        f"no font has {len(characters):,} of the characters, such as {first} (U+{ord(first):04X}): "
        f"drawn as '{REPLACEMENT}'; install a font that has them"
    )


def _font_files(folders: Sequence[Path]) -> list[str]:
    files = [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in (".ttf", ".otf", ".ttc")
    ]
    styles = ("bold", "italic", "oblique", "mono", "condensed", "serif", "light", "thin", "black")
    plain = [path for path in files if not any(style in path.stem.lower() for style in styles)]
    return [str(path) for path in [*plain, *(path for path in files if path not in plain)]]


def _has(font: Font, character: str) -> bool:
    """Whether a font has a glyph for a character; blanks need none."""
    if character.isspace():
        return True
    from PIL.ImageFont import FreeTypeFont

    if not isinstance(font, FreeTypeFont):  # Pillow without FreeType has a font of Latin-1 only
        return ord(character) < 256
    glyph, none = font.getmask(character), font.getmask(NO_GLYPH)
    return glyph.size != none.size or bytes(glyph) != bytes(none)
