"""Pictograms put together from a symbol and what befalls it: love behind bars, money that grows."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from msgspec import Struct

from sightline.build.scenes.meanings import Meaning
from sightline.build.scenes.scene import Thing
from sightline.build.scenes.wording import Fact, Wording


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
    Symbol("Love", (Thing("heart", (0.5, 0.5), 0.34, "red"),), "Life"),
    Symbol("Money", (Thing("coins", (0.5, 0.5), 0.3),), "Society"),
    Symbol("Nature", (Thing("globe", (0.5, 0.5), 0.36, "green"),), "Environment"),
    Symbol("Genius", (Thing("bulb", (0.5, 0.5), 0.36, "yellow"),), "Psychology"),
    Symbol("Knowledge", (Thing("book", (0.5, 0.5), 0.4, "blue"),), "Art"),
    Symbol("Fame", (Thing("star", (0.5, 0.5), 0.38, "gold"),), "Society"),
    Symbol("Freedom", (Thing("bird", (0.5, 0.5), 0.4, "black"),), "Society"),
    Symbol("Time", (Thing("hourglass", (0.5, 0.5), 0.28, "brown", stretch=1.3),), "Life"),
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
    """Whether that fate of that idea is kept for tests: of every idea one or two fates are."""
    return (SYMBOLS.index(symbol) + STATES.index(state)) % 6 == 0


def distractors(symbol: Symbol, state: State, random: Random, *, kept: bool = True) -> list[str]:
    """Five other meanings: two of the same idea, two of the same fate, one of neither.

    Unless `kept` they are none of those that are kept for tests.
    """

    def some(ideas: Sequence[Symbol], fates: Sequence[State], count: int) -> list[str]:
        pairs = [(idea, fate) for idea in ideas for fate in fates if kept or not is_kept(idea, fate)]
        return [f"{idea.idea} {fate.fate}" for idea, fate in random.sample(pairs, count)]

    ideas = [other for other in SYMBOLS if other is not symbol]
    fates = [other for other in STATES if other is not state]
    return [*some([symbol], fates, 2), *some(ideas, [state], 2), *some(ideas, fates, 1)]


def facts(symbol: Symbol, state: State) -> list[Fact]:
    """The idea alone and the fate alone."""
    return [
        Fact("idea", Wording(("What does the thing in this picture stand for?",)), symbol.idea),
        Fact("fate", Wording(("What befalls the idea in this picture?",)), state.fate),
    ]
