"""Pictures that only a context makes plain, with their questions: CODIS in small, in its five categories."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from sightline.build.scenes.puzzles.attributes import belongings, cups, weights
from sightline.build.scenes.puzzles.cultural import doors, invitation, wedding
from sightline.build.scenes.puzzles.location import crossing, hill, landmark
from sightline.build.scenes.puzzles.puzzle import Composed
from sightline.build.scenes.puzzles.relationships import family, siblings
from sightline.build.scenes.puzzles.temporal import clock, panels, seaside

KINDS: tuple[Callable[[Random], Composed], ...] = (
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
"""Every kind of picture; the first five are of five categories."""
