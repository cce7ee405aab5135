"""Images that are ambiguous without a context, with questions, in the five categories of CODIS."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from sightline.builders.scenes.puzzles.attributes import belongings, cups, weights
from sightline.builders.scenes.puzzles.cultural import doors, invitation, wedding
from sightline.builders.scenes.puzzles.location import crossing, hill, landmark
from sightline.builders.scenes.puzzles.puzzle import PuzzleImage
from sightline.builders.scenes.puzzles.relationships import family, siblings
from sightline.builders.scenes.puzzles.temporal import clock, panels, seaside

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
