"""An image that is ambiguous without a context: its parts, and the CODIS pairs made from it."""

from __future__ import annotations

from random import Random

from msgspec import Struct

from sightline.builders.scenes.phrasings import Fact, Phrasings
from sightline.builders.scenes.scene import TINTS, Scene, Thing

VIVID = ("red", "blue", "green", "yellow", "purple", "orange")
"""The colours of things that may have any colour."""
THINGS = ("car", "ball", "cup", "gift", "umbrella", "star", "tent", "fish")
"""Things that may have any colour."""
AROUND = {"top": (0.5, 0.2), "right": (0.82, 0.5), "bottom": (0.5, 0.8), "left": (0.18, 0.5)}
"""Positions around the centre, clockwise from the top."""
ROW = {"left": 0.2, "middle": 0.5, "right": 0.8}
"""Horizontal positions in a row of three."""


class Situation(Struct, frozen=True):
    """The phrasings of a context, and the answer that follows from it."""

    contexts: Phrasings
    answer: str


class Puzzle(Struct, frozen=True):
    """A question about an image whose answer depends on the situation.

    `combination` names the attributes of the image that the question combines.
    """

    category: str
    questions: Phrasings
    situations: tuple[Situation, ...]
    combination: str


class PuzzleImage(Struct, frozen=True):
    """An image, its puzzles, and facts that need no context."""

    scene: Scene
    puzzles: tuple[Puzzle, ...]
    facts: tuple[Fact, ...] = ()


class PosedPuzzle(Struct, frozen=True):
    """A question about an image with two contexts, and the answer for each."""

    category: str
    question: str
    contexts: tuple[str, str]
    answers: tuple[str, str]


def pose(puzzle: Puzzle, random: Random) -> PosedPuzzle:
    """Phrase a puzzle for a test, in two situations with different answers."""
    while True:
        first, second = random.sample(puzzle.situations, 2)
        if first.answer != second.answer:
            break
    return PosedPuzzle(
        puzzle.category,
        puzzle.questions.choose_for_test(random),
        (first.contexts.choose_for_test(random), second.contexts.choose_for_test(random)),
        (first.answer, second.answer),
    )


def on_tinted_background(random: Random, things: tuple[Thing, ...]) -> Scene:
    return Scene(things, random.choice(TINTS))
