"""Flags of human verdicts, kept in `Verdict.scores`: partly right, and contradicted by a second mark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sightline.types import Verdict

PARTLY = "partly"
"""Marks a verdict on a response that is partly right; the verdict itself is `wrong`."""

CONTRADICTED = "contradicted"
"""Marks a verdict that another mark of the same source contradicts."""

Partly = Literal["wrong", "left-out"]
"""How partly right responses count."""


def apply_partly(verdicts: Iterable[Verdict], partly: Partly) -> list[Verdict]:
    """Count partly right responses as wrong, or leave them out."""
    return [verdict for verdict in verdicts if partly == "wrong" or PARTLY not in verdict.scores]


def contradictions(verdicts: Iterable[Verdict]) -> list[str]:
    """Quote the verdicts that a second mark contradicts."""
    return [verdict.raw for verdict in verdicts if CONTRADICTED in verdict.scores]
