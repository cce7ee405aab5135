"""Text in the place of images, for models that take none: what stands in them, and what they show.

The augmented text-only models of ConTextual (Wadhawan et al. 2024, section 3.1 and Appendix E).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from msgspec import Struct

from sightline.images import BadImage
from sightline.models.layout import layout_text, plain_text
from sightline.models.ocr import Word
from sightline.prompts import fill, load
from sightline.types import Augmentation, ImageRef, Message, Part, Text

AUGMENTATIONS: tuple[Augmentation, ...] = get_args(Augmentation)

CAPTIONED: Augmentation = "layout+caption"
"""The one that says what images show, too."""


class InWords(Struct, frozen=True):
    """An image in words: the text that stands in it, and what it shows ('' where that is not told)."""

    text: str
    caption: str = ""


class Augmented(Struct, frozen=True):
    """Images in words by their paths, or why one cannot be told, and the prompts in which they are told."""

    how: Augmentation
    images: Mapping[str, InWords | BadImage]

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages with no image left in them; those that hold none are as they were.

        What a turn says beside its images is its instruction. Raises BadImage where one cannot be told.
        """
        places = [place for place, message in enumerate(messages) if _images(message.parts)]
        told = list(messages)
        for place in places:
            words = self._turn(messages[place].parts)
            parts = load(__package__)[self.how]
            if place == places[-1]:
                words = parts["call"] + words
            if place == places[0]:
                opening: str = parts["opening"]
                words = (opening if len(places) == 1 else opening.rstrip() + "\n") + words
            told[place] = Message(messages[place].role, (Text(words),))
        return tuple(told)

    def _turn(self, parts: Sequence[Part]) -> str:
        shown = [self._in_words(image) for image in _images(parts)]
        return fill(
            load(__package__)[self.how]["turn"],
            instruction="\n".join(part.text for part in parts if isinstance(part, Text)).strip(),
            text=_each([one.text for one in shown]),
            caption=_each([one.caption for one in shown]),
        )

    def _in_words(self, image: ImageRef) -> InWords:
        found = self.images[image.path]
        if isinstance(found, BadImage):
            raise found
        return found


def text_of(words: Iterable[Word], how: Augmentation) -> str:
    """What was read in an image as it is told: in reading order, or with its layout."""
    return plain_text(words) if how == "ocr" else layout_text(words)


def _images(parts: Iterable[Part]) -> list[ImageRef]:
    return [part for part in parts if isinstance(part, ImageRef)]


def _each(texts: Sequence[str]) -> str:
    """One text as it is; several under numbers, by which prompts speak of them (II-Bench: <Picture 1>)."""
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"Picture {number}:\n{text}" for number, text in enumerate(texts, 1))
