"""What a scorer is: a rule that decides by itself, or two pure functions around what is expensive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from sightline.types import Case, Group, Message, VerdictName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

JUDGE_SAMPLING: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
"""What a judge model is asked with where the user says nothing else; unpublished in all four papers."""


class Reading(Struct, frozen=True):
    """What a scorer read: the verdict, the words it was read from, the option extracted, numbers by name.

    A judge model's reply that holds no verdict is `undecided`.
    """

    verdict: VerdictName
    raw: str = ""
    extracted: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


class RuleScorer(Struct, frozen=True):
    """Decides a case by itself."""

    name: str
    decide: Callable[[Case], Reading]


class ModelScorer(Struct, frozen=True):
    """Asks a model about a case, and reads its reply.

    Where it `sees`, the images of the case are part of what it asks. A reply without a verdict is asked for
    again, as another draw, up to `chances` times in all.
    """

    name: str
    ask: Callable[[Case], tuple[Message, ...]]
    read: Callable[[str], Reading]
    sees: bool = False
    chances: int = 1


class VectorScorer(Struct, frozen=True):
    """Reads a group by the vectors of its texts.

    `texts` gives what is to be embedded, none of it empty; `read` gets their unit vectors in the same
    order, shape (texts, dimensions), and gives the group back with scores and judgements.
    """

    name: str
    texts: Callable[[Group], Sequence[str]]
    read: Callable[[Group, Vectors], Group]


Scorer = RuleScorer | ModelScorer | VectorScorer
