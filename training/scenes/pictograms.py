"""Pictograms that combine the symbol of an idea with a fate: love behind bars, money that grows."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from random import Random

from msgspec import Struct

from training.scenes.drawing import TINTS, Phrasings, Scene, Thing, transformed


class Symbol(Struct, frozen=True):
    """A thing that stands for an idea, and the domain of the idea as II-Bench spells it."""

    idea: str
    things: tuple[Thing, ...]
    domain: str


class Fate(Struct, frozen=True):
    """What happens to an idea: things behind and in front of its symbol, with the emotion."""

    text: str
    behind: tuple[Thing, ...]
    in_front: tuple[Thing, ...]
    emotion: str
    rhetoric: tuple[str, ...]


SYMBOLS = (
    Symbol("love", (Thing("heart", (0.5, 0.5), 0.34, "red"),), "Life"),
    Symbol("money", (Thing("coins", (0.5, 0.5), 0.3),), "Society"),
    Symbol("nature", (Thing("globe", (0.5, 0.5), 0.36, "green"),), "Environment"),
    Symbol("genius", (Thing("bulb", (0.5, 0.5), 0.36, "yellow"),), "Psychology"),
    Symbol("knowledge", (Thing("book", (0.5, 0.5), 0.4, "blue"),), "Art"),
    Symbol("fame", (Thing("star", (0.5, 0.5), 0.38, "gold"),), "Society"),
    Symbol("freedom", (Thing("bird", (0.5, 0.5), 0.4, "black"),), "Society"),
    Symbol("time", (Thing("hourglass", (0.5, 0.5), 0.28, "brown", stretch=1.3),), "Life"),
)

FATES = (
    Fate(
        "is locked away.",
        (),
        (Thing("bars", (0.5, 0.5), 0.56, "slate"),),
        "Negative",
        ("Metaphor", "Symbolism"),
    ),
    Fate(
        "goes up in flames.",
        (),
        (
            Thing("flame", (0.3, 0.7), 0.26),
            Thing("flame", (0.5, 0.76), 0.3),
            Thing("flame", (0.7, 0.7), 0.26),
        ),
        "Negative",
        ("Metaphor",),
    ),
    Fate("grows with care.", (), (Thing("sprout", (0.5, 0.2), 0.34, "green"),), "Positive", ("Metaphor",)),
    Fate(
        "is well protected.",
        (Thing("umbrella", (0.5, 0.36), 0.86, "purple"),),
        (Thing("raindrop", (0.08, 0.6), 0.08, "water"), Thing("raindrop", (0.92, 0.66), 0.08, "water")),
        "Positive",
        ("Symbolism",),
    ),
    Fate(
        "is ruled by others.",
        (
            Thing("control_bar", (0.5, 0.12), 0.5, "brown"),
            Thing("band", (0.38, 0.3), 0.012, "black", stretch=30),
            Thing("band", (0.62, 0.3), 0.012, "black", stretch=30),
        ),
        (),
        "Negative",
        ("Metaphor",),
    ),
    Fate(
        "lives only on the phone.",
        (Thing("phone", (0.5, 0.5), 0.66, "black", stretch=1.4),),
        (),
        "Negative",
        ("Exaggerate",),
    ),
    Fate(
        "melts away.",
        (Thing("cone", (0.5, 0.76), 0.36),),
        (Thing("drip", (0.38, 0.7), 0.1, "water"), Thing("drip", (0.62, 0.72), 0.1, "water")),
        "Negative",
        ("Metaphor", "Visual Dislocation"),
    ),
    Fate(
        "stands at the edge of ruin.",
        (Thing("cliff", (0.3, 0.84), 0.56, "brown", stretch=0.6),),
        (),
        "Negative",
        ("Symbolism",),
    ),
)


SymbolAndFate = tuple[Symbol, Fate]

_HELD_OUT = (({0, 1, 2}, {0, 1, 2}), ({3, 4, 5}, {3, 4, 5}), ({6, 7}, {2, 6, 7}))
"""Blocks of symbols and fates, by their indices, that are held out for tests: 24 of 64 combinations."""


def pictogram_meaning(symbol: Symbol, fate: Fate) -> Meaning:
    text = f"{symbol.idea} {fate.text}"
    return Meaning(
        name=text,
        things=(*fate.behind, *symbol.things, *fate.in_front),
        meaning=text,
        explanation=text,
        domain=symbol.domain,
        emotion=fate.emotion,
        rhetoric=fate.rhetoric,
        difficulty="Hard",
    )


def pictogram_is_held_out(symbol: Symbol, fate: Fate) -> bool:
    """Tell whether a combination is held out for tests.

    Whole blocks are held out, so that all options of a question can be held out too.
    """
    row, column = SYMBOLS.index(symbol), FATES.index(fate)
    return any(row in symbols and column in fates for symbols, fates in _HELD_OUT)


def choose_pictogram(random: Random, *, held_out: bool) -> SymbolAndFate:
    return random.choice(random.choice(_grids(held_out)))


def distractors(pair: SymbolAndFate, random: Random, *, held_out: bool) -> list[str]:
    """Choose five wrong meanings for a pictogram.

    Together with the right one they combine each of two ideas with each of three fates, or three with two.
    So the options give no hint: over many questions of `choose_pictogram`, each is right equally often.

    Args:
        held_out: Whether all six are held out for tests, or none.
    """
    grid = random.choice([grid for grid in _grids(held_out) if pair in grid])
    return [f"{symbol.idea} {fate.text}" for symbol, fate in grid if (symbol, fate) != pair]


@cache
def _grids(held_out: bool) -> list[list[SymbolAndFate]]:
    """All combinations of two ideas with three fates, and of three with two."""
    grids = []
    for symbol_count, fate_count in ((2, 3), (3, 2)):
        for symbols, fates in product(combinations(SYMBOLS, symbol_count), combinations(FATES, fate_count)):
            grid = list(product(symbols, fates))
            if all(pictogram_is_held_out(symbol, fate) == held_out for symbol, fate in grid):
                grids.append(grid)
    return grids


# -- Pictograms with an implied meaning and the labels of II-Bench


class Meaning(Struct, frozen=True):
    """The things of a pictogram, its meaning, and its labels as II-Bench spells them."""

    name: str
    things: tuple[Thing, ...]
    meaning: str
    explanation: str
    domain: str
    emotion: str
    rhetoric: tuple[str, ...]
    difficulty: str = "Easy"


QUESTIONS = Phrasings(
    (
        "What is the implied meaning of this picture?",
        "Which of these does the picture want to say?",
        "What does this picture stand for?",
    ),
    (),
    ("Which message is hidden in this picture?", "What is the deeper meaning here?"),
)

MEANINGS = (
    Meaning(
        "predator",
        (Thing("hungry_fish", (0.36, 0.5), 0.58, "blue"), Thing("fish", (0.82, 0.5), 0.2, "yellow")),
        "the strong live at the cost of the weak.",
        "A big fish with open jaws is about to swallow a small one.",
        "Society",
        "Negative",
        ("Metaphor",),
    ),
    Meaning(
        "balance",
        (
            Thing("scales", (0.5, 0.52), 0.8, "slate"),
            Thing("coins", (0.23, 0.6), 0.2),
            Thing("heart", (0.79, 0.3), 0.17, "red"),
        ),
        "money is given more weight than love.",
        "On a balance the pan with coins hangs low, the pan with a heart hangs high.",
        "Society",
        "Negative",
        ("Symbolism", "Contrast"),
        "Middle",
    ),
    Meaning(
        "freedom",
        (
            Thing("link", (0.2, 0.5), 0.34, "grey"),
            Thing("burst_link", (0.47, 0.5), 0.34, "grey"),
            Thing("bird", (0.78, 0.24), 0.24, "black"),
        ),
        "whoever breaks what binds him is free.",
        "A chain has burst open, and a bird flies away from it.",
        "Society",
        "Positive",
        ("Symbolism",),
    ),
    Meaning(
        "exhaustion",
        (
            Thing("candle", (0.5, 0.55), 0.6, "gold"),
            Thing("flame", (0.21, 0.45), 0.16),
            Thing("flame", (0.79, 0.45), 0.16),
        ),
        "who works day and night burns himself out.",
        "A candle burns at both of its ends.",
        "Life",
        "Negative",
        ("Metaphor",),
        "Middle",
    ),
    Meaning(
        "time",
        (Thing("hourglass", (0.5, 0.5), 0.8, "brown"), Thing("person", (0.5, 0.68), 0.2, "blue")),
        "the time that a person has is running out.",
        "A person stands in the lower half of an hourglass, and the sand falls on him.",
        "Life",
        "Negative",
        ("Metaphor",),
        "Middle",
    ),
    Meaning(
        "connection",
        (
            Thing("cliff", (0.12, 0.7), 0.36, stretch=1.6),
            Thing("cliff", (0.88, 0.7), 0.36, flip=True, stretch=1.6),
            Thing("bridge", (0.5, 0.42), 0.5, "brown"),
            Thing("heart", (0.5, 0.16), 0.14, "red"),
        ),
        "love overcomes what separates people.",
        "A bridge with a heart above it joins two cliffs.",
        "Life",
        "Positive",
        ("Metaphor", "Symbolism"),
    ),
    Meaning(
        "cage",
        (
            Thing("phone", (0.5, 0.5), 0.8, "black"),
            Thing("person", (0.5, 0.5), 0.44, "red"),
            Thing("bars", (0.5, 0.48), 0.56, "slate", stretch=1.1),
        ),
        "people are prisoners of their phones.",
        "A person stands behind bars inside a phone's screen.",
        "Society",
        "Negative",
        ("Metaphor", "Exaggerate"),
    ),
    Meaning(
        "saving",
        (Thing("coins", (0.5, 0.72), 0.42), Thing("sprout", (0.5, 0.3), 0.5, "green")),
        "money that is saved well grows by itself.",
        "A young plant grows out of a stack of coins.",
        "Life",
        "Positive",
        ("Metaphor",),
    ),
    Meaning(
        "mask",
        (Thing("sad_face", (0.36, 0.45), 0.56, "yellow"), Thing("mask", (0.66, 0.56), 0.5, "gold")),
        "behind a cheerful look there can be sorrow.",
        "A weeping face hides behind a laughing mask.",
        "Psychology",
        "Negative",
        ("Contrast", "Metaphor"),
        "Middle",
    ),
    Meaning(
        "chances",
        (
            Thing("ladder", (0.28, 0.55), 0.32, "brown", stretch=2.2),
            Thing("poor_ladder", (0.72, 0.55), 0.32, "brown", stretch=2.2),
            Thing("star", (0.28, 0.1), 0.14, "gold"),
            Thing("star", (0.72, 0.1), 0.14, "gold"),
        ),
        "not everybody has the same chances to succeed.",
        "Two ladders lead to stars, but one of them lacks most of its rungs.",
        "Society",
        "Negative",
        ("Contrast",),
        "Middle",
    ),
    Meaning(
        "warming",
        (
            Thing("cone", (0.5, 0.74), 0.36),
            Thing("globe", (0.5, 0.36), 0.46, "green"),
            Thing("drip", (0.4, 0.66), 0.1, "water"),
            Thing("drip", (0.6, 0.7), 0.1, "water"),
        ),
        "the Earth is melting away as it grows hotter.",
        "The globe sits on a cone like ice cream and drips.",
        "Environment",
        "Negative",
        ("Metaphor", "Visual Dislocation"),
    ),
    Meaning(
        "idea",
        (Thing("head", (0.48, 0.58), 0.7, "slate"), Thing("bulb", (0.44, 0.4), 0.3, "yellow")),
        "a good idea lights up the mind.",
        "A light bulb shines inside a head.",
        "Others",
        "Positive",
        ("Symbolism",),
    ),
    Meaning(
        "puppet",
        (
            Thing("control_bar", (0.5, 0.14), 0.5, "brown"),
            Thing("band", (0.36, 0.42), 0.012, "black", stretch=36),
            Thing("band", (0.64, 0.42), 0.012, "black", stretch=36),
            Thing("person", (0.5, 0.7), 0.5, "purple"),
        ),
        "somebody else decides what this person does.",
        "A hand holds the strings on which a person hangs.",
        "Society",
        "Negative",
        ("Metaphor",),
    ),
    Meaning(
        "pollution",
        (
            Thing("factory", (0.32, 0.66), 0.52, "slate"),
            Thing("smoke", (0.34, 0.24), 0.34, "grey"),
            Thing("bare_tree", (0.8, 0.64), 0.34, "brown"),
        ),
        "industry kills the nature around it.",
        "Beside a smoking factory stands a dead tree.",
        "Environment",
        "Negative",
        ("Contrast",),
    ),
    Meaning(
        "reading",
        (
            Thing("book", (0.5, 0.7), 0.6, "blue"),
            Thing("bird", (0.3, 0.3), 0.22, "black"),
            Thing("bird", (0.56, 0.18), 0.22, "black"),
            Thing("bird", (0.76, 0.36), 0.22, "black"),
        ),
        "reading sets the imagination free.",
        "Birds fly up out of an open book.",
        "Art",
        "Positive",
        ("Metaphor", "Personification"),
        "Middle",
    ),
    Meaning(
        "depth",
        (Thing("band", (0.5, 0.68), 1.0, "water", stretch=0.66), Thing("iceberg", (0.5, 0.55), 0.7)),
        "what shows is only a small part of the whole.",
        "Only the tip of an iceberg stands out of the water.",
        "Psychology",
        "Neutral",
        ("Metaphor",),
        "Hard",
    ),
    Meaning(
        "shelter",
        (
            Thing("umbrella", (0.5, 0.42), 0.72, "red"),
            Thing("person", (0.5, 0.74), 0.34, "green"),
            Thing("raindrop", (0.12, 0.3), 0.08, "water"),
            Thing("raindrop", (0.9, 0.44), 0.08, "water"),
            Thing("raindrop", (0.2, 0.74), 0.08, "water"),
            Thing("raindrop", (0.84, 0.8), 0.08, "water"),
        ),
        "whoever is protected stands safe in hard times.",
        "A person stands dry under a big umbrella while it rains.",
        "Life",
        "Positive",
        ("Symbolism", "Analogy"),
        "Hard",
    ),
)

IMAGE_TYPES = ("Illustration", "Poster", "Logo", "Single-panel Comic", "Meme", "Painting")


def meaning_scene(meaning: Meaning, random: Random) -> tuple[Scene, tuple[str, ...]]:
    """Compose a random image with a meaning.

    A logo gets a ring, a painting a frame, a comic a speech bubble, a poster or a meme a neutral word.
    """
    kind = random.choice(IMAGE_TYPES)
    scale = random.choice((0.72, 0.76, 0.8)) if kind in ("Logo", "Painting", "Poster") else 0.88
    things = transformed(meaning.things, scale=scale, mirror=random.random() < 0.5)
    extra = {
        "Logo": (Thing("circle", (0.5, 0.5), 0.97, "slate"),),
        "Painting": (Thing("frame", (0.5, 0.5), 0.98, "gold"),),
        "Poster": (Thing("words", (0.5, 0.94), 0.3, "black", text=random.choice(("THINK", "LOOK", "NOW"))),),
        "Single-panel Comic": (Thing("bubble", (0.88, 0.12), 0.2, "black", text="!"),),
        "Meme": (Thing("words", (0.5, 0.06), 0.3, "black", text=random.choice(("ME TODAY", "TRUE"))),),
    }.get(kind, ())
    scene = Scene((*things, *extra), random.choice(TINTS))
    types = (
        (kind,) if random.random() < 0.8 else (kind, "Illustration") if kind != "Illustration" else (kind,)
    )
    return scene, types


def layout_name(meaning: Meaning, scene: Scene, types: tuple[str, ...]) -> str:
    """Name the combination of a meaning, an image type and a background, which may be held out for tests."""
    return f"{meaning.name} {types[0]} {scene.background}"
