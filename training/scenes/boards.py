"""Images whose text has a meaning only together with colours and positions, as in ConTextual."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec import Struct

from training.scenes.drawing import TINTS, Fact, Phrasings, Scene, Thing
from training.scenes.puzzles import THINGS, VIVID

WORDS = (
    "tea", "milk", "bread", "rice", "open", "exit", "sale", "stop",
    "park", "bus", "zoo", "cafe", "bank", "gym", "pool", "lab",
)  # fmt: skip
CORNERS = {
    "top left": (0.27, 0.24),
    "top right": (0.73, 0.24),
    "bottom left": (0.27, 0.72),
    "bottom right": (0.73, 0.72),
}


_SIGN_SAYS = Phrasings(
    (
        "What does the {colour} sign say?",
        "What is written on the {colour} sign?",
        "Which word is on the {colour} sign?",
    ),
    ("Read the {colour} sign.",),
    ("The {colour} sign says what?",),
)
_SIGN_AT = Phrasings(
    ("What does the sign at the {place} say?", "What is written on the sign at the {place}?"),
    ("Read the sign at the {place}.",),
    ("Which word is on the sign at the {place}?",),
)
_SIGN_COLOR = Phrasings(
    (
        "What color is the sign that says {word}?",
        "Which color does the sign with the word {word} have?",
    ),
    ("The sign that says {word} has what color?",),
    ("What is the color of the sign with the word {word}?",),
)
_PRICE = Phrasings(
    ("How much is the {name}?", "What does the {name} cost?", "What is the price of the {name}?"),
    ("Read the price of the {name}.",),
    ("For the {name}, what is the price?",),
)
_COSTS = Phrasings(
    ("Which thing costs ${price}?", "What can I buy for ${price}?"),
    ("What is it that costs ${price}?",),
    ("For ${price}, which thing can I buy?",),
)


class Board(Struct, frozen=True):
    """An image with text, the category of ConTextual that it represents, and the questions about it."""

    category: str
    scene: Scene
    facts: tuple[Fact, ...]
    text: str
    """All text with its colours and positions, in reading order."""


def signs(random: Random) -> Board:
    """Create two or three signs, one above the other, with distinct words and colours."""
    count = random.choice((2, 3))
    words, colours = random.sample(WORDS, count), random.sample(VIVID, count)
    places = ("top", "bottom") if count == 2 else ("top", "middle", "bottom")
    heights = (0.3, 0.7) if count == 2 else (0.2, 0.5, 0.8)
    things: list[Thing] = []
    facts: list[Fact] = []
    for word, colour, place, y in zip(words, colours, places, heights, strict=True):
        at = (random.uniform(0.4, 0.6), y)
        things += [
            Thing("band", at, 0.72, colour, stretch=0.34),
            Thing("band", at, 0.66, "white", stretch=0.27),
            Thing("words", at, 0.8, "black", text=word.upper()),
        ]
        combination = f"sign {colour} {word} {place}"
        facts += [
            Fact("sign_says", _SIGN_SAYS.fill(colour=colour), word, combination),
            Fact("sign_at", _SIGN_AT.fill(place=place), word, combination),
            Fact("sign_color", _SIGN_COLOR.fill(word=word), colour, combination),
        ]
    text = "; ".join(f"{colour} sign: {word}" for colour, word in zip(colours, words, strict=True))
    return Board("stvqa", _scene(random, things), tuple(facts), text)


def guidepost(random: Random) -> Board:
    """Create a guidepost with three rows, each with a word and an arrow."""
    words = random.sample(WORDS, 3)
    ways = [random.choice(("left", "right", "straight ahead")) for _ in words]
    ground = random.choice(("green", "blue", "slate"))
    things = [Thing("band", (0.5, 0.5), 0.92, ground, stretch=1.0)]
    facts: list[Fact] = []
    for word, way, y in zip(words, ways, (0.22, 0.5, 0.78), strict=True):
        turn = {"left": -90, "right": 90, "straight ahead": 0}[way]
        things += [
            Thing("words", (0.37, y), 0.7, "white", text=word.upper()),
            Thing("arrow", (0.8, y), 0.2, "white", turn),
        ]
        facts.append(
            Fact(
                "way",
                Phrasings(
                    (
                        f"Which way is it to the {word}: left, right or straight ahead?",
                        f"Do I go left, right or straight ahead to the {word}?",
                    ),
                    (f"Where do I find the {word}: left, right or straight ahead?",),
                    (f"To the {word}, do I go left, right or straight ahead?",),
                ),
                way,
                f"way {word} {way} {y}",
            )
        )
    for place, word in zip(("top", "middle", "bottom"), words, strict=True):
        facts.append(
            Fact(
                "row_word",
                Phrasings((f"Which word is at the {place} of the sign?",)),
                word,
                f"row {word} {place}",
            )
        )
    text = "; ".join(f"{word}: {way}" for word, way in zip(words, ways, strict=True))
    return Board("navigation-transportation", _scene(random, things), tuple(facts), text)


def shop(random: Random) -> Board:
    """Create three or four goods with their prices below them."""
    count = random.choice((3, 4))
    corners = random.sample(list(CORNERS), count)
    names, prices = random.sample(THINGS, count), random.sample(range(1, 10), count)
    colours = [random.choice(VIVID) for _ in names]
    things: list[Thing] = []
    facts: list[Fact] = []
    for name, colour, price, corner in zip(names, colours, prices, corners, strict=True):
        x, y = CORNERS[corner]
        things += [
            Thing(name, (x, y - 0.07), 0.25, colour),
            Thing("band", (x, y + 0.17), 0.26, "white", stretch=0.7),
            Thing("words", (x, y + 0.17), 0.66, "black", text=f"${price}"),
        ]
        combination = f"price {colour} {name} {price}"
        facts += [
            Fact("price", _PRICE.fill(name=name), f"${price}", combination),
            Fact("costs", _COSTS.fill(price=str(price)), f"the {name}", combination),
        ]
    ranked = sorted(zip(prices, names, strict=True))
    for kind, (price, name) in (("cheapest", ranked[0]), ("dearest", ranked[-1])):
        facts.append(
            Fact(
                kind,
                Phrasings(
                    (f"Which thing is the {kind}?", f"What is the {kind} thing?"),
                    (f"Name the {kind} thing.",),
                    (f"Which one is the {kind} thing?",),
                ),
                f"the {name}",
                f"price {colours[names.index(name)]} {name} {price}",
            )
        )
    text = "; ".join(
        f"{name} at the {at}: ${price}" for name, at, price in zip(names, corners, prices, strict=True)
    )
    return Board("shopping", _scene(random, things), tuple(facts), text)


def clocks(random: Random) -> Board:
    """Create two clocks of two colours that show full or half hours."""
    colours = random.sample(VIVID, 2)
    times = [(random.randrange(1, 13), random.choice((0, 30))) for _ in colours]
    things: list[Thing] = []
    facts: list[Fact] = []
    for colour, (hour, minute), (side, x) in zip(
        colours, times, (("left", 0.26), ("right", 0.74)), strict=True
    ):
        at = (x, random.uniform(0.42, 0.58))
        things += [
            Thing("clock", at, 0.46, colour),
            Thing("hand", at, 0.27, "black", 30 * (hour % 12 + minute / 60)),
            Thing("minute_hand", at, 0.38, "black", 6 * minute),
        ]
        combination = f"clock {side} {colour} {hour}:{minute:02}"
        facts += [
            Fact(
                "clock_color",
                Phrasings(
                    (
                        f"What time does the {colour} clock show?",
                        f"What time is it on the {colour} clock?",
                    ),
                    (f"Read the {colour} clock.",),
                    (f"The {colour} clock shows what time?",),
                ),
                f"{hour}:{minute:02}",
                combination,
            ),
            Fact(
                "clock_side",
                Phrasings(
                    (
                        f"What time does the clock on the {side} show?",
                        f"What time is it on the clock on the {side}?",
                    ),
                    (f"Read the clock on the {side}.",),
                    (f"The clock on the {side} shows what time?",),
                ),
                f"{hour}:{minute:02}",
                combination,
            ),
        ]
    text = "; ".join(f"{colour} clock: {h}:{m:02}" for colour, (h, m) in zip(colours, times, strict=True))
    return Board("time", _scene(random, things), tuple(facts), text)


def tasks(random: Random) -> Board:
    """Create a phone's list of three words, one of them ticked."""
    words, ticked = random.sample(WORDS, 3), random.randrange(3)
    frame = random.choice(VIVID)
    things = [Thing("band", (0.5, 0.5), 0.96, frame), Thing("band", (0.5, 0.5), 0.88, "white")]
    facts: list[Fact] = []
    for number, (word, y) in enumerate(zip(words, (0.24, 0.5, 0.76), strict=True)):
        things += [
            Thing("band", (0.18, y), 0.16, "black"),
            Thing("band", (0.18, y), 0.12, "green" if number == ticked else "white"),
            Thing("words", (0.61, y), 0.76, "black", text=word.upper()),
        ]
        order = ("first", "second", "third")[number]
        facts.append(
            Fact(
                "item",
                Phrasings(
                    (f"What is the {order} word on the list?", f"Which word is {order} on the list?"),
                    (f"Read the {order} word on the list.",),
                    (f"On the list, what is the {order} word?",),
                ),
                word,
                f"list {frame} {word} {order}",
            )
        )
    facts.append(
        Fact(
            "ticked",
            Phrasings(
                ("Which word on the list is ticked green?", "What is ticked green on the list?"),
                ("Read the word that is ticked green.",),
                ("On the list, which word is ticked green?",),
            ),
            words[ticked],
            f"ticked {frame} {words[ticked]} {ticked}",
        )
    )
    text = "; ".join(words) + f"; ticked: {words[ticked]}"
    return Board("app", _scene(random, things), tuple(facts), text)


def chart(random: Random) -> Board:
    """Create a bar chart of three or four bars with their values above them."""
    count = random.choice((3, 4))
    colours, values = random.sample(VIVID, count), random.sample(range(1, 10), count)
    things = [Thing("band", (0.5, 0.95), 0.94, "slate", stretch=0.03)]
    facts: list[Fact] = []
    for number, (colour, value) in enumerate(zip(colours, values, strict=True)):
        x, height = (number + 0.5) / count, 0.07 * value
        things += [
            Thing("band", (x, 0.94 - height / 2), 0.15, colour, stretch=height / 0.15),
            Thing("words", (x, 0.86 - height), 0.62, "black", text=str(value)),
        ]
        facts.append(
            Fact(
                "bar",
                Phrasings(
                    (f"What is the value of the {colour} bar?", f"How much is the {colour} bar?"),
                    (f"Read the value of the {colour} bar.",),
                    (f"For the {colour} bar, what is the value?",),
                ),
                str(value),
                f"bar {colour} {value} of {count}",
            )
        )
    ranked = sorted(zip(values, colours, strict=True))
    for kind, (value, colour) in (("lowest", ranked[0]), ("highest", ranked[-1])):
        facts.append(
            Fact(
                kind,
                Phrasings(
                    (f"Which bar is the {kind}?", f"What color is the {kind} bar?"),
                    (f"Name the color of the {kind} bar.",),
                    (f"Of what color is the {kind} bar?",),
                ),
                colour,
                f"bar {colour} {value} of {count}",
            )
        )
    text = "; ".join(f"{colour}: {value}" for colour, value in zip(colours, values, strict=True))
    return Board("infographics", _scene(random, things), tuple(facts), text)


BOARDS: tuple[Callable[[Random], Board], ...] = (signs, guidepost, shop, clocks, tasks, chart)


def _scene(random: Random, things: list[Thing]) -> Scene:
    return Scene(tuple(things), random.choice(TINTS))
