"""How questions are phrased, and which phrasings and combinations training must not use."""

from __future__ import annotations

import hashlib
from random import Random
from typing import Literal

from msgspec import Struct

Tier = Literal["common", "rare", "unseen"]

RARE = 0.04
"""The share of training questions that use a rare phrasing."""
HELD_OUT = 6
"""One combination of attributes in this many is held out for tests."""
SALT = 623
"""Chosen by search: every side, thing, colour, idea and fate is among the held-out ones, none too often."""


class Phrasings(Struct, frozen=True):
    """The ways to phrase one text: those that training uses often, rarely and never."""

    common: tuple[str, ...]
    rare: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All phrasings."""
        return (*self.common, *self.rare, *self.unseen)

    def tier(self, phrase: str) -> Tier:
        """Look up how often training uses a phrasing."""
        tiers: dict[str, Tier] = {
            **dict.fromkeys(self.unseen, "unseen"),
            **dict.fromkeys(self.rare, "rare"),
            **dict.fromkeys(self.common, "common"),
        }
        return tiers[phrase]

    def choose_for_training(self, random: Random) -> str:
        """Sample a phrasing that training may use."""
        return random.choice(self.rare if self.rare and random.random() < RARE else self.common)

    def choose_for_test(self, random: Random) -> str:
        """Sample from all phrasings."""
        in_training = (*self.common, *self.rare)
        return random.choice(self.unseen if self.unseen and random.random() < 0.5 else in_training)

    def fill(self, **slots: str) -> Phrasings:
        """Replace {slots} in all phrasings."""
        common, rare, unseen = (
            tuple(phrase.format(**slots) for phrase in phrases)
            for phrases in (self.common, self.rare, self.unseen)
        )
        return Phrasings(common, rare, unseen)


class Fact(Struct, frozen=True):
    """A question about an image with its answer.

    `kind` is the type of the question; `combination` names the attributes of the image that it combines.
    """

    kind: str
    questions: Phrasings
    answer: str
    combination: str = ""


def is_held_out(combination: str) -> bool:
    """Tell whether a combination of attributes is held out for tests."""
    return hashlib.sha256(f"{SALT} {combination}".encode()).digest()[0] % HELD_OUT == 0
