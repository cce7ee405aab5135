"""Pictograms put together from a symbol and what befalls it: love behind bars, money that grows."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from random import Random

from msgspec import Struct

from sightline.builders.scenes.meanings import Meaning
from sightline.builders.scenes.scene import Thing
from sightline.builders.scenes.wording import Fact, Wording


class Symbol(Struct, frozen=True):
    """A thing that stands for an idea, and the domain of life that the idea belongs to."""

    idea: str
    things: tuple[Thing, ...]
    domain: str


class State(Struct, frozen=True):
    """What befalls an idea: things behind and in front of its symbol, and how that feels."""

    fate: str
    behind: tuple[Thing, ...]
    before: tuple[Thing, ...]
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

STATES = (
    State(
        "is locked away.",
        (),
        (Thing("bars", (0.5, 0.5), 0.56, "slate"),),
        "Negative",
        ("Metaphor", "Symbolism"),
    ),
    State(
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
    State("grows with care.", (), (Thing("sprout", (0.5, 0.2), 0.34, "green"),), "Positive", ("Metaphor",)),
    State(
        "is well protected.",
        (Thing("umbrella", (0.5, 0.36), 0.86, "purple"),),
        (Thing("raindrop", (0.08, 0.6), 0.08, "water"), Thing("raindrop", (0.92, 0.66), 0.08, "water")),
        "Positive",
        ("Symbolism",),
    ),
    State(
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
    State(
        "lives only on the phone.",
        (Thing("phone", (0.5, 0.5), 0.66, "black", stretch=1.4),),
        (),
        "Negative",
        ("Exaggerate",),
    ),
    State(
        "melts away.",
        (Thing("cone", (0.5, 0.76), 0.36),),
        (Thing("drip", (0.38, 0.7), 0.1, "water"), Thing("drip", (0.62, 0.72), 0.1, "water")),
        "Negative",
        ("Metaphor", "Visual Dislocation"),
    ),
    State(
        "stands at the edge of ruin.",
        (Thing("cliff", (0.3, 0.84), 0.56, "brown", stretch=0.6),),
        (),
        "Negative",
        ("Symbolism",),
    ),
)


Pair = tuple[Symbol, State]

_KEPT = (({0, 1, 2}, {0, 1, 2}), ({3, 4, 5}, {3, 4, 5}), ({6, 7}, {2, 6, 7}))
"""Blocks of ideas and fates, by their places above, that are kept for tests: 24 of 64 combinations."""


def state_of(symbol: Symbol, state: State) -> Meaning:
    """The pictogram of an idea and its fate, with its labels."""
    return Meaning(
        f"{symbol.idea} {state.fate}",
        (*state.behind, *symbol.things, *state.before),
        f"{symbol.idea} {state.fate}",
        f"{symbol.idea} {state.fate}",
        symbol.domain,
        state.emotion,
        state.rhetoric,
        "Hard",
    )


def is_kept(symbol: Symbol, state: State) -> bool:
    """Whether that fate of that idea is kept for tests: blocks of ideas and fates are, so that the options
    of a question can all be of one kind."""
    idea, fate = SYMBOLS.index(symbol), STATES.index(state)
    return any(idea in ideas and fate in fates for ideas, fates in _KEPT)


def pictogram(random: Random, *, kept: bool) -> Pair:
    """An idea and its fate: one that is kept for tests, or one that is not."""
    return random.choice(random.choice(_grids(kept)))


def distractors(pair: Pair, random: Random, *, kept: bool) -> list[str]:
    """Five other meanings that, with this one, bring each of two ideas together with each of three fates,
    or three with two; all of them are kept for tests, or none is.

    So nothing but the image tells which of the six it is: after `pictogram` each is it equally often.
    """
    grid = random.choice([grid for grid in _grids(kept) if pair in grid])
    return [f"{symbol.idea} {state.fate}" for symbol, state in grid if (symbol, state) != pair]


@cache
def _grids(kept: bool) -> list[list[Pair]]:
    """All ways to bring two ideas and three fates together, or three and two."""
    found = []
    for ideas, fates in ((2, 3), (3, 2)):
        for symbols, states in product(combinations(SYMBOLS, ideas), combinations(STATES, fates)):
            grid = list(product(symbols, states))
            if all(is_kept(symbol, state) == kept for symbol, state in grid):
                found.append(grid)
    return found


def facts(symbol: Symbol, state: State) -> list[Fact]:
    """The idea alone and the fate alone."""
    return [
        Fact("idea", Wording(("What does the thing in this picture stand for?",)), symbol.idea),
        Fact("fate", Wording(("What befalls the idea in this picture?",)), state.fate),
    ]
