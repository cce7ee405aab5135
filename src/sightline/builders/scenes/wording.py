"""How a question may be put, and what is kept from a model that learns from drawn scenes."""

from __future__ import annotations

import hashlib
from random import Random
from typing import Literal

from msgspec import Struct

Tier = Literal["common", "rare", "unseen"]

RARE = 0.04
"""How often a training question is put in a rare way."""
HELD_OUT = 6
"""One combination in that many is kept for tests."""
SALT = 623
"""Found by trying: with it every side, thing, colour, idea and fate is among what is kept, none too often."""


class Wording(Struct, frozen=True):
    """Ways to say one thing: those that training uses often, seldom, and never."""

    common: tuple[str, ...]
    rare: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every way."""
        return (*self.common, *self.rare, *self.unseen)

    def tier(self, phrase: str) -> Tier:
        """How often training says that. Raises KeyError for a phrase that is none of these ways."""
        tiers: dict[str, Tier] = {
            **dict.fromkeys(self.unseen, "unseen"),
            **dict.fromkeys(self.rare, "rare"),
            **dict.fromkeys(self.common, "common"),
        }
        return tiers[phrase]

    def said(self, random: Random) -> str:
        """One of the ways that training uses."""
        return random.choice(self.rare if self.rare and random.random() < RARE else self.common)

    def tested(self, random: Random) -> str:
        """Any of the ways, those that training never uses as often as all others together."""
        seen = (*self.common, *self.rare)
        return random.choice(self.unseen if self.unseen and random.random() < 0.5 else seen)


class Fact(Struct, frozen=True):
    """A plain question about an image and its answer.

    `kind` is the type of the question; `mix` names the attributes that the question brings together.
    """

    kind: str
    questions: Wording
    answer: str
    mix: str = ""


def held_out(mix: str) -> bool:
    """Whether that combination of attributes is kept for tests: the same for everybody, for ever."""
    return hashlib.sha256(f"{SALT} {mix}".encode()).digest()[0] % HELD_OUT == 0
