"""The kinds of scorers: a rule, or pure functions around a model call or an embedding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from sightline.types import Case, Group, Message, VerdictName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

JUDGE_SAMPLING: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
"""The default sampling options of a judge model; all four papers leave them unpublished."""


class Reading(Struct, frozen=True):
    """The result of a scorer.

    Attributes:
        verdict: The verdict; `undecided` if the reply of a judge model holds none.
        raw: The text that was read.
        extracted: The option or text that was extracted from the response.
        scores: Numbers by name.
    """

    verdict: VerdictName
    raw: str = ""
    extracted: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


RuleVerdict = Literal["right", "wrong", "undecided"]
"""What rules decide about a response with a reference."""


class RuleScorer(Struct, frozen=True):
    """A scorer that decides a case by rules."""

    name: str
    decide: Callable[[Case], Reading]


class ModelScorer(Struct, frozen=True):
    """A scorer that asks a model about a case and reads its reply.

    Attributes:
        name: The name in verdicts.
        ask: Makes the messages of the request.
        read: Reads a reply.
        sees: Whether the request holds the images of the case.
        chances: How often a request is sent at most until a reply holds a verdict.
    """

    name: str
    ask: Callable[[Case], tuple[Message, ...]]
    read: Callable[[str], Reading]
    sees: bool = False
    chances: int = 1


class VectorScorer(Struct, frozen=True):
    """A scorer that reads a group by the vectors of its texts.

    Attributes:
        name: The name in verdicts.
        texts: The texts to embed, none of them empty.
        read: Takes their unit vectors in the same order, shape (texts, dimensions), and returns the group
            with scores and judgements.
    """

    name: str
    texts: Callable[[Group], Sequence[str]]
    read: Callable[[Group, Vectors], Group]


Scorer = RuleScorer | ModelScorer | VectorScorer
