"""Images that only a context makes plain, with their questions: CODIS in small, in its five categories."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from sightline.builders.scenes.puzzles.attributes import belongings, cups, weights
from sightline.builders.scenes.puzzles.cultural import doors, invitation, wedding
from sightline.builders.scenes.puzzles.location import crossing, hill, landmark
from sightline.builders.scenes.puzzles.puzzle import Composed
from sightline.builders.scenes.puzzles.relationships import family, siblings
from sightline.builders.scenes.puzzles.temporal import clock, panels, seaside

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
"""Every kind of image; the first five are of five categories."""
