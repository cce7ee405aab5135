"""Pictograms that combine the symbol of an idea with a fate: love behind bars, money that grows."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from random import Random

from msgspec import Struct

from sightline.builders.scenes.meanings import Meaning
from sightline.builders.scenes.phrasings import Fact, Phrasings
from sightline.builders.scenes.scene import Thing


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
    """Combine a symbol and a fate."""
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
    """Sample a combination."""
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


def pictogram_facts(symbol: Symbol, fate: Fate) -> list[Fact]:
    """Ask about the symbol and the fate of a pictogram separately."""
    return [
        Fact("idea", Phrasings(("What does the thing in this picture stand for?",)), symbol.idea),
        Fact("fate", Phrasings(("What befalls the idea in this picture?",)), fate.text),
    ]
