"""Puzzles of the CODIS category Location and Orientation: where things are, relative to a viewer."""

from __future__ import annotations

from random import Random

from sightline.builders.scenes.phrasings import Fact, Phrasings
from sightline.builders.scenes.puzzles.puzzle import (
    AROUND,
    THINGS,
    VIVID,
    Puzzle,
    PuzzleImage,
    Situation,
    on_tinted_background,
)
from sightline.builders.scenes.scene import Scene, Thing

CATEGORY = "Location and Orientation"
COMPASS = ("north", "east", "south", "west")


def landmark(random: Random) -> PuzzleImage:
    """Create a house with a landmark on one side; the context tells where north is."""
    side = random.choice(list(AROUND))
    name, colour = random.choice([("tree", "green"), ("tower", "grey"), ("tent", random.choice(VIVID))])
    things = (
        Thing("house", (0.5, 0.5), 0.26),
        Thing(name, AROUND[side], 0.24, colour),
        Thing("compass", (0.88, 0.12), 0.17),
    )
    turns = list(AROUND).index(side)
    ways = "North, east, south or west?"
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            (
                f"In which direction is the {name} from the house? {ways}",
                f"Which way is it from the house to the {name}? {ways}",
            ),
            (f"The {name} is in which direction from the house? {ways}",),
            (f"From the house, in which direction is the {name}? {ways}",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (f"The top of the picture is {north}.", f"On this map {north} is at the top."),
                    (),
                    (f"In this picture {north} is at the top.",),
                ),
                f"{COMPASS[(top + turns) % 4].capitalize()}.",
            )
            for top, north in enumerate(COMPASS)
        ),
        f"landmark {name} {colour} {side}",
    )
    fact = Fact("beside", Phrasings((f"On which side of the house is the {name}?",)), side)
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), (fact,))


def hill(random: Random) -> PuzzleImage:
    """Create a car on a slope that looks the same from both ends; the context tells where it was before."""
    flip = random.random() < 0.5
    ground, colour = random.choice(("grass", "sand", "brown")), random.choice(VIVID)
    things = (
        Thing("band", (0.5, 0.5), 1.0, "sky"),
        Thing("slope", (0.5, 0.6), 1.0, ground, flip=flip, stretch=0.8),
        Thing("car", (0.47 if not flip else 0.53, 0.46), 0.2, colour, -43 if not flip else 43),
    )
    low = "right" if flip else "left"
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            ("Is the car going uphill or downhill?", "Does the car go uphill or downhill?"),
            ("Uphill or downhill: which way does the car go?",),
            ("Which way is the car going, uphill or downhill?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (f"A minute ago the car was further to the {side}.", f"The car came from the {side}."),
                    (),
                    (f"A minute ago the car came from the {side}.",),
                ),
                "Uphill." if side == low else "Downhill.",
            )
            for side in ("left", "right")
        ),
        f"hill {ground} {colour} {low}",
    )
    facts = (
        Fact("high", Phrasings(("Which side of the hill is higher?",)), "left" if flip else "right"),
        Fact("low", Phrasings(("Which side of the hill is lower?",)), low),
    )
    return PuzzleImage(Scene(things), (puzzle,), facts)


def crossing(random: Random) -> PuzzleImage:
    """Create four things around a centre; the context tells where the viewer stands."""
    names = random.sample(THINGS, 4)
    colours = [random.choice(VIVID) for _ in names]
    things = tuple(
        Thing(name, at, 0.24, colour)
        for name, colour, at in zip(names, colours, AROUND.values(), strict=True)
    )
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            ("Which thing is nearest to me?", "What is nearest to me?"),
            ("The nearest thing to me is what?",),
            ("Which is the thing nearest to me?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (f"I stand at the {side} of the picture.", f"I am at the {side}."),
                    (),
                    (f"I am at the {side} of the picture.",),
                ),
                f"The {name}.",
            )
            for name, side in zip(names, AROUND, strict=True)
        ),
        f"crossing {' '.join(names)}",
    )
    facts = tuple(
        Fact("around", Phrasings((f"Which thing is at the {side}?",)), f"the {name}")
        for name, side in zip(names, AROUND, strict=True)
    )
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)
