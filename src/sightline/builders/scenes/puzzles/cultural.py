"""Puzzles of the CODIS category Cultural Background: what something means in a culture."""

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

CATEGORY = "Cultural Background"
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September")


def doors(random: Random) -> PuzzleImage:
    """Create a door with a number that is unlucky in one culture and neutral in another."""
    number, colour = random.choice(("4", "13")), random.choice(VIVID)
    things = (Thing("door", (0.5, 0.5), 0.9, colour, text=number),)
    unlucky = "China" if number == "4" else "the United States"
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            (
                "Would the number on this door make my guest uncomfortable?",
                "Does the number on this door make my guest uncomfortable?",
            ),
            ("Is my guest uncomfortable with the number on this door?",),
            ("My guest sees the number on this door. Would it make my guest uncomfortable?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (
                        f"My guest comes from {land} and believes in lucky numbers.",
                        f"My guest believes in lucky numbers, as many do in {land}.",
                    ),
                    (),
                    (f"In {land}, where my guest comes from, many believe in lucky numbers.",),
                ),
                "Yes." if land == unlucky else "No.",
            )
            for land in ("China", "the United States")
        ),
        f"doors {number} {colour}",
    )
    facts = (Fact("plate", Phrasings(("What number is on the door?",)), number),)
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)


def invitation(random: Random) -> PuzzleImage:
    """Create a card with a date in digits, which two countries read in two ways."""
    one, other = random.sample(range(1, 10), 2)
    colour = random.choice(VIVID)
    things = (Thing("card", (0.5, 0.5), 0.85, colour, text=f"{one}/{other}"),)
    months = " or ".join(MONTHS[month - 1] for month in sorted((one, other)))
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            (f"In which month is the party? {months}?", f"When is the party? In {months}?"),
            (f"The party is in which month? {months}?",),
            (f"Which month is the party in? {months}?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (f"My friend from {land} sent me this card.", f"This card came from {land}."),
                    (),
                    (f"This card came from my friend in {land}.",),
                ),
                f"{MONTHS[month - 1]}.",
            )
            for land, month in (("the United States", one), ("England", other))
        ),
        f"invitation {one}/{other}",
    )
    facts = (Fact("date", Phrasings(("What is written on the card?",)), f"{one}/{other}"),)
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)


def wedding(random: Random) -> PuzzleImage:
    """Create three people in three colours; the country's custom tells who the bride is."""
    shirts = random.sample(VIVID, 3)
    things = tuple(
        Thing("person", (x, 0.56), 0.5, shirt) for shirt, x in zip(shirts, ROW.values(), strict=True)
    )
    things = (*things, Thing("heart", (0.5, 0.12), 0.16, "red"))
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            (
                "Where is the bride? On the left, in the middle or on the right?",
                "Who is the bride? The person on the left, in the middle or on the right?",
            ),
            ("On the left, in the middle or on the right: where is the bride?",),
            ("Is the bride the person on the left, in the middle or on the right?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (f"In their country a bride wears {shirt}.", f"A bride in this country is in {shirt}."),
                    (),
                    (f"In this country every bride wears {shirt}.",),
                ),
                "In the middle." if place == "middle" else f"On the {place}.",
            )
            for shirt, place in zip(shirts, ROW, strict=True)
        ),
        f"wedding {' '.join(shirts)}",
    )
    facts = tuple(
        Fact("wears", Phrasings((f"Where is the person in {shirt}?",)), f"on the {place}")
        for shirt, place in zip(shirts, ROW, strict=True)
    )
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)
