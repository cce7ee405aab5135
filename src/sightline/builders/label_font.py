"""Draws labels in any script: each character in the first font that has it, of Pillow's and the system's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

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
        """Load Pillow's own font.

        Args:
            size: Size in pixels.
            folders: Folders of fonts; None takes those of the system.
        """
        from PIL import ImageFont

        self.missing: set[str] = set()
        self._size = size
        self._folders = font_folders() if folders is None else folders
        self._own: Font = ImageFont.load_default(size)
        self._font_of: dict[str, Font | None] = {}

    def getlength(self, text: str) -> float:
        """Measure a text.

        Returns:
            Its width in pixels.
        """
        return sum(font.getlength(part) for part, font in self._parts(text))

    def draw(self, draw: ImageDraw, position: tuple[float, float], text: str, colour: str) -> None:
        """Draw a text.

        Args:
            position: The upper left corner, in pixels.
        """
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
