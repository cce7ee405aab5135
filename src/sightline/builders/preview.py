"""One sheet of what was built: a row a group, the original first, to be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from sightline.builders.image_io import open_upright, save
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, read_groups
from sightline.images import BadImage

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

LONGEST = 4000
"""Pixels a side that a sheet never exceeds."""
CELL, LEAST, GAP = 240, 90, 12
"""Pixels a side of an image at most and at least, and between two."""
SIZE, LINE = 14, 18
"""Pixels of the writing, and from line to line."""
LINES, HEAD = 4, 2
"""Lines of writing below an image, and above a row."""


class _SheetLayout(Struct, frozen=True):
    """How many rows and columns are drawn, and pixels a side of an image."""

    rows: int
    columns: int
    cell: int

    @property
    def row_height(self) -> int:
        """Pixels from the top of a row to that of the next."""
        return (HEAD + LINES) * LINE + self.cell + 2 * GAP

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the sheet in pixels."""
        return GAP + self.columns * (self.cell + GAP), GAP + self.rows * self.row_height


def sheet(folder: Path, path: Path, *, rows: int = 8, seed: int = 0) -> None:
    """Draw up to `rows` groups, chosen by `seed`, into one PNG of at most 4,000 pixels a side.

    Above a row stand the group's id, its references and what is asked; below each image its variant and
    labels, and what is asked where that differs. The same folder and seed give the same bytes. UserError
    where groups.jsonl is wrong, EnvironmentFailedError where the disk refuses.
    """
    draw_lines(read_groups(folder / "groups.jsonl"), folder, path, rows=rows, seed=seed)


def draw_lines(
    lines: Iterable[GroupLine], folder: Path, path: Path, *, rows: int = 8, seed: int | None = None
) -> None:
    """The same of lines, one at least, that are in no file; their images lie in `folder`.

    Without a seed the first groups are drawn, those that come first on top.
    """
    from PIL import Image, ImageDraw, ImageFont

    groups = by_group(lines)
    names = list(groups)
    fitting = _layout(rows, max(len(lines) for lines in groups.values()))
    count = min(fitting.rows, len(names))
    chosen: Sequence[int] = range(count)
    if seed is not None:
        chosen = sorted(Random(f"preview {seed}").sample(range(len(names)), count))
    layout = _SheetLayout(len(chosen), fitting.columns, fitting.cell)
    canvas = Image.new("RGB", layout.size, "white")
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(SIZE)
    for row, number in enumerate(chosen):
        top = GAP + row * layout.row_height
        _draw_group(canvas, pen, font, groups[names[number]], top, layout, folder)
    save(canvas, path, "png")


def _layout(rows: int, variants: int) -> _SheetLayout:
    """As many rows and columns as there is room for, images as large as that allows."""
    columns = min(variants, (LONGEST - GAP) // (LEAST + GAP))
    cell = min(CELL, (LONGEST - GAP) // columns - GAP)
    one = _SheetLayout(1, columns, cell)
    return _SheetLayout(max(1, min(rows, (LONGEST - GAP) // one.row_height)), columns, cell)


def _draw_group(
    canvas: Image,
    pen: ImageDraw,
    font: Font,
    lines: Sequence[GroupLine],
    top: int,
    layout: _SheetLayout,
    folder: Path,
) -> None:
    ordered = sorted(lines, key=lambda line: line.variant != ORIGINAL)
    shown = ordered[: layout.columns]
    asked = {line.prompt for line in shown}
    width = layout.size[0] - 2 * GAP
    _write(pen, font, (GAP, top), _title(ordered, len(shown)), width, 1, "black")
    if len(asked) == 1:
        _write(pen, font, (GAP, top + LINE), asked.pop(), width, 1, "dimgray")
    for column, line in enumerate(shown):
        left, below = GAP + column * (layout.cell + GAP), top + HEAD * LINE
        image, height = _thumbnail(line, folder, layout.cell), layout.cell
        if isinstance(image, str):
            pen.rectangle((left, below, left + layout.cell - 1, below + layout.cell - 1), outline="silver")
            room = (layout.cell - GAP) // LINE
            _write(
                pen, font, (left + GAP // 2, below + GAP // 2), image, layout.cell - GAP, room, "firebrick"
            )
        else:
            canvas.paste(image, (left, below))
            height = image.height
        caption = "; ".join(_labels_beyond(line, shown))
        words = f"{line.variant}: {caption}" if caption else line.variant
        if len({other.prompt for other in shown}) > 1:
            words += f" | {line.prompt}"
        _write(pen, font, (left, below + height + 4), words, layout.cell, LINES, "black")


def _title(lines: Sequence[GroupLine], shown: int) -> str:
    references = " | ".join(dict.fromkeys(one for line in lines for one in line.references))
    more = f" ({len(lines) - shown} more variants)" if len(lines) > shown else ""
    return f"{lines[0].group}{more}, reference: {references or 'none'}"


def _labels_beyond(line: GroupLine, lines: Sequence[GroupLine]) -> list[str]:
    """The labels of a line, without those that all its group shares with it where it is not alone."""
    found = []
    for name, value in line.labels.items():
        if len(lines) == 1 or any(other.labels.get(name) != value for other in lines):
            found.append(f"{name} {value if isinstance(value, str) else ', '.join(value)}")
    return found


def _thumbnail(line: GroupLine, folder: Path, side: int) -> Image | str:
    """The line's first image made small, or in words why there is none."""
    from PIL import Image

    if not line.images:
        return "no image"
    try:
        image = open_upright(folder / line.images[0])
    except BadImage as error:
        return str(error).removeprefix(f"{folder}/")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image


def _write(
    pen: ImageDraw, font: Font, place: tuple[int, int], text: str, width: int, lines: int, colour: str
) -> None:
    """Write a text in so many lines of that width in pixels, with dots for what is left over."""
    left, top = place
    for number, line in enumerate(_broken(text, font, width, lines)):
        pen.text((left, top + number * LINE), line, fill=colour, font=font)


def _broken(text: str, font: Font, width: int, most: int) -> list[str]:
    lines: list[str] = []
    rest = " ".join(text.split())
    while rest and len(lines) < most:
        length = _fitting(rest, font, width)
        if length < len(rest) and len(lines) == most - 1:
            return [*lines, rest[: max(1, _fitting(rest, font, width - font.getlength("...")))] + "..."]
        if length < len(rest) and " " in rest[: length + 1].strip():
            length = rest.rindex(" ", 0, length + 1)
        lines.append(rest[:length])
        rest = rest[length:].lstrip()
    return lines


def _fitting(text: str, font: Font, width: float) -> int:
    """How many characters of a text fit into a width; at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if font.getlength(text[:middle]) <= width else (low, middle - 1)
    return low
