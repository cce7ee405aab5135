"""What things are made of, and whose they are: the puzzles of Attributes."""

from __future__ import annotations

from random import Random

from sightline.builders.scenes.puzzles.puzzle import ROW, THINGS, VIVID, Composed, Puzzle, Situation, on_tint
from sightline.builders.scenes.scene import Thing
from sightline.builders.scenes.wording import Fact, Wording

CATEGORY = "Attributes"


def cups(random: Random) -> Composed:
    """A finger over one of two cups."""
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
        Wording(
            (
                "Can I burn my hand at the cup that the finger points at?",
                "Is the cup that the finger points at hot?",
            ),
            ("The finger points at a cup. Is it hot?",),
            ("The finger points at a cup. Can I burn my hand at it?",),
        ),
        tuple(
            Situation(
                Wording(
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
    facts = (Fact("finger", Wording(("What color is the cup that the finger points at?",)), shown),)
    return Composed(on_tint(random, things), (puzzle,), facts)


def weights(random: Random) -> Composed:
    """Two balls, alike but for their colour."""
    first, second = random.sample(VIVID, 2)
    things = (Thing("ball", (0.28, 0.6), 0.36, first), Thing("ball", (0.72, 0.6), 0.36, second))
    puzzle = Puzzle(
        CATEGORY,
        Wording(
            (
                "Which ball is heavier, the one on the left or the one on the right?",
                "Is the ball on the left or the one on the right heavier?",
            ),
            ("Left or right: where is the heavier ball?",),
            ("Where is the heavier ball, on the left or on the right?",),
        ),
        tuple(
            Situation(
                Wording(
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
        Fact("side", Wording(("What color is the ball on the left?",)), first),
        Fact("side", Wording(("What color is the ball on the right?",)), second),
    )
    return Composed(on_tint(random, things), (puzzle,), facts)


def belongings(random: Random) -> Composed:
    """Three things of three colours: whose they are is said by the colour."""
    names, colours = random.sample(THINGS, 3), random.sample(VIVID, 3)
    things = tuple(
        Thing(name, (x, random.uniform(0.4, 0.6)), 0.26, colour)
        for name, colour, x in zip(names, colours, ROW.values(), strict=True)
    )
    puzzle = Puzzle(
        CATEGORY,
        Wording(
            ("Which of these things is mine?", "What did I leave here?"),
            ("Which thing did I leave here?",),
            ("Which of these things did I leave here?",),
        ),
        tuple(
            Situation(
                Wording(
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
        Fact("belongs", Wording((f"Which thing is {colour}?",)), f"the {name}")
        for name, colour in zip(names, colours, strict=True)
    )
    return Composed(on_tint(random, things), (puzzle,), facts)
