"""Puzzles of the CODIS category Relationships: how people are related."""

from __future__ import annotations

from random import Random

from sightline.builders.scenes.phrasings import Fact, Phrasings
from sightline.builders.scenes.puzzles.puzzle import (
    ROW,
    VIVID,
    Puzzle,
    PuzzleImage,
    Situation,
    on_tinted_background,
)
from sightline.builders.scenes.scene import Thing

CATEGORY = "Relationships"

_SISTER = Phrasings(
    (
        "Who is my sister? The person on the left or on the right?",
        "Where is my sister? On the left or on the right?",
    ),
    ("Left or right: where is my sister?",),
    ("Is my sister the person on the left or on the right?",),
)
_SISTER_CONTEXT = Phrasings(
    ("My sister wears the {shirt} shirt.", "My sister is the one in {shirt}."),
    (),
    ("My sister is the one who wears the {shirt} shirt.",),
)
_BROTHER = Phrasings(
    (
        "Is my brother giving or receiving the present?",
        "Does my brother give or receive? Is he giving or receiving?",
    ),
    ("Giving or receiving: what does my brother do?",),
    ("What does my brother do, is he giving or receiving the present?",),
)
_BROTHER_CONTEXT = Phrasings(
    ("My brother is the one in {shirt}.", "My brother wears the {shirt} shirt."),
    (),
    ("My brother is the person in the {shirt} shirt.",),
)


def siblings(random: Random) -> PuzzleImage:
    """Create two people with a present between them: who is who, and who gives."""
    giver, taker = random.sample(VIVID, 2)
    flip = random.random() < 0.5
    left, right = (taker, giver) if flip else (giver, taker)
    things = (
        Thing("giver", (0.72 if flip else 0.28, 0.58), 0.55, giver, flip=flip),
        Thing("person", (0.22 if flip else 0.78, 0.58), 0.55, taker),
        Thing("gift", (0.44 if flip else 0.56, 0.5), 0.13, random.choice(("pink", "gold"))),
    )
    combination = f"siblings {giver} {taker} {flip}"
    sister = Puzzle(
        CATEGORY,
        _SISTER,
        tuple(
            Situation(
                _SISTER_CONTEXT.fill(shirt=shirt),
                "The person on the left." if shirt == left else "The person on the right.",
            )
            for shirt in (left, right)
        ),
        combination,
    )
    brother = Puzzle(
        CATEGORY,
        _BROTHER,
        tuple(
            Situation(_BROTHER_CONTEXT.fill(shirt=shirt), "Giving." if shirt == giver else "Receiving.")
            for shirt in (giver, taker)
        ),
        combination,
    )
    facts = (
        Fact("shirt", Phrasings(("What color is the shirt of the person on the left?",)), left),
        Fact("shirt", Phrasings(("What color is the shirt of the person on the right?",)), right),
        Fact("gives", Phrasings(("What color is the shirt of the person who is giving?",)), giver),
    )
    return PuzzleImage(on_tinted_background(random, things), (sister, brother), facts)


def family(random: Random) -> PuzzleImage:
    """Create three people in a row; the context names one by the position."""
    shirts = random.sample(VIVID, 3)
    things = tuple(
        Thing("person", (x, 0.56), 0.5, shirt) for shirt, x in zip(shirts, ROW.values(), strict=True)
    )
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            ("What color is the shirt of my aunt?", "Which color does my aunt wear?"),
            ("My aunt wears which color?",),
            ("Of what color is the shirt that my aunt wears?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (f"My aunt is the person on the {place}.", f"On the {place} is my aunt."),
                    (),
                    (f"The person on the {place} is my aunt.",),
                ),
                f"{shirt.capitalize()}.",
            )
            for shirt, place in zip(shirts, ROW, strict=True)
        ),
        f"family {' '.join(shirts)}",
    )
    facts = tuple(
        Fact("row", Phrasings((f"What color is the shirt of the person on the {place}?",)), shirt)
        for shirt, place in zip(shirts, ROW, strict=True)
    )
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)
