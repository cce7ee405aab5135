"""When something was, and what came first: the puzzles of Temporal Information."""

from __future__ import annotations

from random import Random

from sightline.builders.scenes.puzzles.puzzle import ROW, THINGS, VIVID, Composed, Puzzle, Situation, on_tint
from sightline.builders.scenes.scene import Scene, Thing
from sightline.builders.scenes.wording import Fact, Wording

CATEGORY = "Temporal Information"


def clock(random: Random) -> Composed:
    """A clock: the same hands stand for a time before noon and for one after."""
    hour, minute = random.randrange(5, 11), random.choice((0, 30))
    things = (
        Thing("clock", (0.5, 0.5), 0.8, random.choice(VIVID)),
        Thing("hand", (0.5, 0.5), 0.46, "black", 30 * (hour + minute / 60)),
        Thing("minute_hand", (0.5, 0.5), 0.66, "black", 6 * minute),
    )
    told = {
        hour: Wording(
            ("I have just got up.", "It is early in the morning."), (), ("I have just got up this morning.",)
        ),
        hour + 12: Wording(
            ("I have just come home from work.", "It is late in the evening."),
            (),
            ("It is evening, and I have come home.",),
        ),
    }
    puzzle = Puzzle(
        CATEGORY,
        Wording(
            (
                "Please express the current time in the 24-hour format.",
                "What time is it in the 24-hour format?",
            ),
            ("Which time is it now, in the 24-hour format?",),
            ("In the 24-hour format, what is the current time?",),
        ),
        tuple(Situation(contexts, f"{shown}:{minute:02}.") for shown, contexts in told.items()),
        f"clock {hour}:{minute:02} {things[0].colour}",
    )
    facts = (Fact("clock", Wording(("What time does the clock show?",)), f"{hour}:{minute:02}"),)
    return Composed(on_tint(random, things), (puzzle,), facts)


def seaside(random: Random) -> Composed:
    """The sun over the sea beside a landmark: rising or setting by where that side of the image lies."""
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
        Wording(
            ("Is it morning or evening?", "Was this picture taken in the morning or in the evening?"),
            ("Morning or evening: when was it?",),
            ("When was this picture taken, in the morning or in the evening?",),
        ),
        tuple(
            Situation(
                Wording(
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
    facts = (Fact("sun", Wording(("On which side is the sun?",)), sun),)
    return Composed(Scene(things), (puzzle,), facts)


def panels(random: Random) -> Composed:
    """Three things in a row, in the order of a day that is told from the left or from the right."""
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
        Wording(
            (f"What did she buy {asked}?", f"Which thing did she buy {asked}?"),
            (f"What was the {asked} thing that she did buy?",),
            (f"Which was the thing that she did buy {asked}?",),
        ),
        tuple(
            Situation(
                Wording(
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
        Fact("panel", Wording(("Which thing is on the left?",)), f"the {names[0]}"),
        Fact("panel", Wording(("Which thing is on the right?",)), f"the {names[2]}"),
    )
    return Composed(Scene((*panel, *things), "sand"), (puzzle,), facts)
