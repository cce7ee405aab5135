"""The interface of OCR readers: an image to its words."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from sightline.types import ImageFile

Point = tuple[float, float]


class Word(Struct, frozen=True, omit_defaults=True):
    """A word, or a few words in one line, and their position.

    Attributes:
        box: (x0, y0, x1, y1) in pixels of the upright image; x1 and y1 are just outside.
        confidence: The reader's confidence, 0 to 1.
        corners: The four corners (x, y) in order, in pixels; () stands for those of the box.
    """

    text: str
    box: tuple[float, float, float, float]
    confidence: float
    corners: tuple[Point, ...] = ()

    @property
    def quad(self) -> tuple[Point, ...]:
        """The four corners in order."""
        left, top, right, bottom = self.box
        return self.corners or ((left, top), (right, top), (right, bottom), (left, bottom))


class Reader(Protocol):
    """Reads the text in images."""

    name: str
    identity: str

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        """Read an image.

        Returns:
            The words in reading order, none if there is no text.
        """
        ...
