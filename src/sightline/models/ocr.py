"""Reading: an image into the words that stand in it."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from sightline.types import ImageFile


class Word(Struct, frozen=True):
    """A word, or a few in one line, and where they stand.

    `box` is (x0, y0, x1, y1) in pixels of the upright image, x1 and y1 just outside it; `confidence` is
    the reader's own, 0 to 1.
    """

    text: str
    box: tuple[float, float, float, float]
    confidence: float


class Reader(Protocol):
    """Something that reads what is written in images.

    `name` is what the user wrote. `identity` says whose readings these are (engine, version, weights): it
    enters the key under which they are remembered.
    """

    name: str
    identity: str

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        """The words in reading order; none where nothing is written.

        Raises BadImage where the image cannot be decoded, UserError where the reader cannot be used.
        """
        ...
