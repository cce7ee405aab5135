"""Puzzles of the CODIS category Attributes: what things are made of and whose they are."""

from __future__ import annotations

from random import Random

from sightline.builders.scenes.phrasings import Fact, Phrasings
from sightline.builders.scenes.puzzles.puzzle import (
    ROW,
    THINGS,
    VIVID,
    Puzzle,
    PuzzleImage,
    Situation,
    on_tinted_background,
)
from sightline.builders.scenes.scene import Thing

CATEGORY = "Attributes"


def cups(random: Random) -> PuzzleImage:
    """Create two cups, and a finger that points at one of them."""
    first, second = random.sample(VIVID, 2)
    pointed = random.choice((0, 1))
    things = (
        Thing("cup", (0.28, 0.68), 0.34, first),
        Thing("cup", (0.72, 0.68), 0.34, second),
        Thing("finger", ((0.27, 0.71)[pointed], 0.27), 0.24),
    )
    shown = (first, second)[pointed]
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            (
                "Can I burn my hand at the cup that the finger points at?",
                "Is the cup that the finger points at hot?",
            ),
            ("The finger points at a cup. Is it hot?",),
            ("The finger points at a cup. Can I burn my hand at it?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (
                        f"The {colour} cup is full of boiling water, the other one is empty.",
                        f"There is boiling water in the {colour} cup.",
                    ),
                    (),
                    (f"There is boiling water in the {colour} cup, the other one is empty.",),
                ),
                "Yes." if colour == shown else "No.",
            )
            for colour in (first, second)
        ),
        f"cups {first} {second} {pointed}",
    )
    facts = (Fact("finger", Phrasings(("What color is the cup that the finger points at?",)), shown),)
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)


def weights(random: Random) -> PuzzleImage:
    """Create two balls that differ only in their colour."""
    first, second = random.sample(VIVID, 2)
    things = (Thing("ball", (0.28, 0.6), 0.36, first), Thing("ball", (0.72, 0.6), 0.36, second))
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            (
                "Which ball is heavier, the one on the left or the one on the right?",
                "Is the ball on the left or the one on the right heavier?",
            ),
            ("Left or right: where is the heavier ball?",),
            ("Where is the heavier ball, on the left or on the right?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (
                        f"The {colour} ball is made of iron, the other one of foam.",
                        f"The {colour} ball is the one made of iron.",
                    ),
                    (),
                    (f"The one made of iron is the {colour} ball.",),
                ),
                "Left." if colour == first else "Right.",
            )
            for colour in (first, second)
        ),
        f"weights {first} {second}",
    )
    facts = (
        Fact("side", Phrasings(("What color is the ball on the left?",)), first),
        Fact("side", Phrasings(("What color is the ball on the right?",)), second),
    )
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)


def belongings(random: Random) -> PuzzleImage:
    """Create three things of three colours; the context names the owner by the colour."""
    names, colours = random.sample(THINGS, 3), random.sample(VIVID, 3)
    things = tuple(
        Thing(name, (x, random.uniform(0.4, 0.6)), 0.26, colour)
        for name, colour, x in zip(names, colours, ROW.values(), strict=True)
    )
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            ("Which of these things is mine?", "What did I leave here?"),
            ("Which thing did I leave here?",),
            ("Which of these things did I leave here?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (f"All that I own is {colour}.", f"Mine is the {colour} one."),
                    (),
                    (f"All things of mine are {colour}.",),
                ),
                f"The {name}.",
            )
            for name, colour in zip(names, colours, strict=True)
        ),
        f"belongings {names[0]} {colours[0]} {names[1]} {colours[1]}",
    )
    facts = tuple(
        Fact("belongs", Phrasings((f"Which thing is {colour}?",)), f"the {name}")
        for name, colour in zip(names, colours, strict=True)
    )
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)
