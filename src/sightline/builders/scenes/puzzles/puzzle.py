"""An image that only a context makes plain: its parts, and how a pair of CODIS is made of them."""

from __future__ import annotations

from random import Random

from msgspec import Struct

from sightline.builders.scenes.scene import TINTS, Scene, Thing
from sightline.builders.scenes.wording import Fact, Wording

VIVID = ("red", "blue", "green", "yellow", "purple", "orange")
"""The colours that things of any colour may have."""
THINGS = ("car", "ball", "cup", "gift", "umbrella", "star", "tent", "fish")
"""Things of any colour."""
AROUND = {"top": (0.5, 0.2), "right": (0.82, 0.5), "bottom": (0.5, 0.8), "left": (0.18, 0.5)}
"""Where a landmark stands round the middle, clockwise from the top."""
ROW = {"left": 0.2, "middle": 0.5, "right": 0.8}
"""How far across stands what is in a row of three."""


class Situation(Struct, frozen=True):
    """A context, in the ways in which it may be told, and the answer that it leads to."""

    contexts: Wording
    answer: str


class Puzzle(Struct, frozen=True):
    """A question about an image that has another answer in each of two or more situations.

    `mix` names the attributes of the image that the question brings together.
    """

    category: str
    questions: Wording
    situations: tuple[Situation, ...]
    mix: str


class Composed(Struct, frozen=True):
    """An image, the puzzles that it poses, and plain facts about it."""

    scene: Scene
    puzzles: tuple[Puzzle, ...]
    facts: tuple[Fact, ...] = ()


class Pair(Struct, frozen=True):
    """One question about an image, two contexts for it, and the answer that each of them gives."""

    category: str
    question: str
    contexts: tuple[str, str]
    answers: tuple[str, str]


def posed(puzzle: Puzzle, random: Random) -> Pair:
    """A puzzle put in words, under two of its situations whose answers differ."""
    while True:
        first, second = random.sample(puzzle.situations, 2)
        if first.answer != second.answer:
            break
    return Pair(
        puzzle.category,
        puzzle.questions.tested(random),
        (first.contexts.tested(random), second.contexts.tested(random)),
        (first.answer, second.answer),
    )


def on_tint(random: Random, things: tuple[Thing, ...]) -> Scene:
    """Things on a pale background drawn by chance."""
    return Scene(things, random.choice(TINTS))
