"""Puzzles of the CODIS category Temporal Information: when something happened, and in which order."""

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
from sightline.builders.scenes.scene import Scene, Thing

CATEGORY = "Temporal Information"


def clock(random: Random) -> PuzzleImage:
    """Create a clock whose hands fit a time before noon and one after."""
    hour, minute = random.randrange(5, 11), random.choice((0, 30))
    things = (
        Thing("clock", (0.5, 0.5), 0.8, random.choice(VIVID)),
        Thing("hand", (0.5, 0.5), 0.46, "black", 30 * (hour + minute / 60)),
        Thing("minute_hand", (0.5, 0.5), 0.66, "black", 6 * minute),
    )
    contexts_of = {
        hour: Phrasings(
            ("I have just got up.", "It is early in the morning."), (), ("I have just got up this morning.",)
        ),
        hour + 12: Phrasings(
            ("I have just come home from work.", "It is late in the evening."),
            (),
            ("It is evening, and I have come home.",),
        ),
    }
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            (
                "Please express the current time in the 24-hour format.",
                "What time is it in the 24-hour format?",
            ),
            ("Which time is it now, in the 24-hour format?",),
            ("In the 24-hour format, what is the current time?",),
        ),
        tuple(Situation(contexts, f"{shown}:{minute:02}.") for shown, contexts in contexts_of.items()),
        f"clock {hour}:{minute:02} {things[0].colour}",
    )
    facts = (Fact("clock", Phrasings(("What time does the clock show?",)), f"{hour}:{minute:02}"),)
    return PuzzleImage(on_tinted_background(random, things), (puzzle,), facts)


def seaside(random: Random) -> PuzzleImage:
    """Create the sun over the sea; the side of the east tells whether it rises or sets."""
    sun = random.choice(("left", "right"))
    colour, mark = random.choice(("orange", "red", "yellow")), random.choice(("tower", "house", "tree"))
    things = (
        Thing("band", (0.5, 0.5), 1.0, "sky"),
        Thing("sun", (0.25 if sun == "left" else 0.75, 0.42), 0.3, colour),
        Thing("sea", (0.5, 0.75), 1.0, stretch=0.5),
        Thing(mark, (0.78 if sun == "left" else 0.22, 0.38), 0.26, "grey"),
    )
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            ("Is it morning or evening?", "Was this picture taken in the morning or in the evening?"),
            ("Morning or evening: when was it?",),
            ("When was this picture taken, in the morning or in the evening?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (
                        f"East is on the {side} of the picture, and west on the other side.",
                        f"The east is to the {side}.",
                    ),
                    (),
                    (f"In this picture east is to the {side}, and west on the other side.",),
                ),
                "Morning." if side == sun else "Evening.",
            )
            for side in ("left", "right")
        ),
        f"seaside {colour} {mark} {sun}",
    )
    facts = (Fact("sun", Phrasings(("On which side is the sun?",)), sun),)
    return PuzzleImage(Scene(things), (puzzle,), facts)


def panels(random: Random) -> PuzzleImage:
    """Create three things in a row; the context tells in which direction to read them."""
    names = random.sample(THINGS, 3)
    colours = [random.choice(VIVID) for _ in names]
    panel = tuple(Thing("band", (x, 0.5), 0.29, "white", stretch=1.9) for x in ROW.values())
    things = tuple(
        Thing(name, (x, 0.5), 0.24, colour)
        for name, colour, x in zip(names, colours, ROW.values(), strict=True)
    )
    first = random.random() < 0.5
    asked = "first" if first else "last"
    puzzle = Puzzle(
        CATEGORY,
        Phrasings(
            (f"What did she buy {asked}?", f"Which thing did she buy {asked}?"),
            (f"What was the {asked} thing that she did buy?",),
            (f"Which was the thing that she did buy {asked}?",),
        ),
        tuple(
            Situation(
                Phrasings(
                    (
                        f"The pictures are to be read from {start} to {end}.",
                        f"Her day goes from {start} to {end}.",
                    ),
                    (),
                    (f"The pictures of her day go from {start} to {end}.",),
                ),
                f"The {names[0] if (start == 'left') == first else names[2]}.",
            )
            for start, end in (("left", "right"), ("right", "left"))
        ),
        f"panels {names[0]} {names[2]}",
    )
    facts = (
        Fact("panel", Phrasings(("Which thing is on the left?",)), f"the {names[0]}"),
        Fact("panel", Phrasings(("Which thing is on the right?",)), f"the {names[2]}"),
    )
    return PuzzleImage(Scene((*panel, *things), "sand"), (puzzle,), facts)
