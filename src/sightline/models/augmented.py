"""Text in place of images, for text-only models: OCR text, its layout, image descriptions.

These are the augmented text-only models of ConTextual (Wadhawan et al. 2024, section 3.1 and Appendix E).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from msgspec import Struct

from sightline.images import BadImage
from sightline.models.ocr import Word, layout_text, plain_text
from sightline.text import fill, load
from sightline.types import Augmentation, ImageRef, Message, Part, Text

AUGMENTATIONS: tuple[Augmentation, ...] = get_args(Augmentation)

CAPTIONED: Augmentation = "layout+caption"
"""The augmentation with an image description."""


class ImageText(Struct, frozen=True):
    """The text that replaces an image: OCR text, and a caption ('' if there is none)."""

    text: str
    caption: str = ""


class Augmented(Struct, frozen=True):
    """The text of each image by its path, or why there is none, and the kind of augmentation."""

    how: Augmentation
    images: Mapping[str, ImageText | BadImage]

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Replace all images in messages by text.

        Messages without images stay unchanged. The text of a turn next to its images is its instruction.
        """
        positions = [position for position, message in enumerate(messages) if _images(message.parts)]
        replaced = list(messages)
        for position in positions:
            words = self._turn(messages[position].parts)
            parts = load(__package__)[self.how]
            if position == positions[-1]:
                words = parts["call"] + words
            if position == positions[0]:
                opening: str = parts["opening"]
                words = (opening if len(positions) == 1 else opening.rstrip() + "\n") + words
            replaced[position] = Message(messages[position].role, (Text(words),))
        return tuple(replaced)

    def _turn(self, parts: Sequence[Part]) -> str:
        texts = [self._text_of(image) for image in _images(parts)]
        return fill(
            load(__package__)[self.how]["turn"],
            instruction="\n".join(part.text for part in parts if isinstance(part, Text)).strip(),
            text=_each([image_text.text for image_text in texts]),
            caption=_each([image_text.caption for image_text in texts]),
        )

    def _text_of(self, image: ImageRef) -> ImageText:
        text = self.images[image.path]
        if isinstance(text, BadImage):
            raise text
        return text


def text_of(words: Iterable[Word], how: Augmentation) -> str:
    """Format OCR words as text."""
    return plain_text(words) if how == "ocr" else layout_text(words)


def _images(parts: Iterable[Part]) -> list[ImageRef]:
    return [part for part in parts if isinstance(part, ImageRef)]


def _each(texts: Sequence[str]) -> str:
    """One text unchanged; several under numbers, to which prompts refer (II-Bench: <Image 1>)."""
    if len(texts) == 1:
        return texts[0]
    # The word "Picture" is part of cached request keys.
    return "\n".join(f"Picture {number}:\n{text}" for number, text in enumerate(texts, 1))
