"""Images that are ambiguous without a context, with questions, in the five categories of CODIS."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec import Struct

from training.scenes.drawing import TINTS, Fact, Phrasings, Scene, Thing

# -- An image that is ambiguous without a context: its parts, and the CODIS pairs made from it

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


# -- Puzzles of the CODIS category Attributes: what things are made of and whose they are

ATTRIBUTES_CATEGORY = "Attributes"


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
        ATTRIBUTES_CATEGORY,
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
        ATTRIBUTES_CATEGORY,
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
        ATTRIBUTES_CATEGORY,
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


# -- Puzzles of the CODIS category Cultural Background: what something means in a culture

CULTURAL_CATEGORY = "Cultural Background"
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September")


def doors(random: Random) -> PuzzleImage:
    """Create a door with a number that is unlucky in one culture and neutral in another."""
    number, colour = random.choice(("4", "13")), random.choice(VIVID)
    things = (Thing("door", (0.5, 0.5), 0.9, colour, text=number),)
    unlucky = "China" if number == "4" else "the United States"
    puzzle = Puzzle(
        CULTURAL_CATEGORY,
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
        CULTURAL_CATEGORY,
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
        CULTURAL_CATEGORY,
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


# -- Puzzles of the CODIS category Location and Orientation: where things are, relative to a viewer

LOCATION_CATEGORY = "Location and Orientation"
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
        LOCATION_CATEGORY,
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
        LOCATION_CATEGORY,
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
        LOCATION_CATEGORY,
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


# -- Puzzles of the CODIS category Relationships: how people are related

RELATIONSHIPS_CATEGORY = "Relationships"

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
        RELATIONSHIPS_CATEGORY,
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
        RELATIONSHIPS_CATEGORY,
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
        RELATIONSHIPS_CATEGORY,
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


# -- Puzzles of the CODIS category Temporal Information: when something happened, and in which order

TEMPORAL_CATEGORY = "Temporal Information"


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
        TEMPORAL_CATEGORY,
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
        TEMPORAL_CATEGORY,
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
        TEMPORAL_CATEGORY,
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


KINDS: tuple[Callable[[Random], PuzzleImage], ...] = (
    landmark,
    clock,
    doors,
    cups,
    siblings,
    hill,
    seaside,
    invitation,
    weights,
    belongings,
    family,
    panels,
    wedding,
    crossing,
)
"""Every kind of image; the first five cover the five categories."""
