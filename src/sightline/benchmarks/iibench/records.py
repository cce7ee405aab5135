"""II-Bench's released records: images with their labels and questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

VALUES: Mapping[str, tuple[str, ...]] = {
    "domain": ("Life", "Art", "Society", "Psychology", "Environment", "Others"),
    "emotion": ("Positive", "Neutral", "Negative"),
    "image_type": (
        "Illustration",
        "Meme",
        "Poster",
        "Multi-panel Comic",
        "Single-panel Comic",
        "Logo",
        "Painting",
    ),
    "difficulty": ("Easy", "Middle", "Hard"),
    "rhetoric": (
        "Metaphor",
        "Exaggerate",
        "Symbolism",
        "Contrast",
        "Visual Dislocation",
        "Antithesis",
        "Analogy",
        "Personification",
        "Others",
    ),
}
"""The labels of an image in the order of the reports, and their values (Appendix B.3) as the released files
spell them."""

LABELS = tuple(VALUES)


class IIBenchQuestion(Struct, frozen=True):
    """One question about an image; the released test split has no answers."""

    id: str
    question: str
    options: tuple[str, ...]
    answer: str | None = None
    correct_option: str | None = None


class ImageMetadata(Struct, frozen=True):
    """The labels of an image, and the explanation of its meaning.

    `image_type` is a list in test and a string in dev; the `explanation` of test-908 is an object.
    """

    domain: str
    emotion: str
    image_type: str | tuple[str, ...]
    difficulty: str
    rhetoric: str | tuple[str, ...]
    explanation: Any = None


class IIBenchRecord(Struct, frozen=True):
    """One released record: an image and its questions."""

    local_path: str
    questions: tuple[IIBenchQuestion, ...]
    meta_data: ImageMetadata
