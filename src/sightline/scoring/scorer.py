"""The kinds of scorers: a rule, or pure functions around a model call or an embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import Struct, field

from sightline.types import Answer, Case, Group, Message, Outcome, Verdict, VerdictName

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
        rule: The rule that decided, in a few words; '' if the scorer has one rule only.
        words: The words of the response that the rule read, or the reference that it found there.
    """

    verdict: VerdictName
    raw: str = ""
    extracted: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    rule: str = ""
    words: str = ""


RuleVerdict = Literal["right", "wrong", "undecided"]
"""What rules decide about a response with a reference."""


class RuleScorer(Struct, frozen=True):
    """A scorer that decides a case by rules.

    Attributes:
        name: The name in verdicts.
        question: The question that it decides, such as `correct` or `same_meaning`.
        decide: Decides a case.
    """

    name: str
    question: str
    decide: Callable[[Case], Reading]


class ModelScorer(Struct, frozen=True):
    """A scorer that asks a model about a case and reads its reply.

    Attributes:
        name: The name in verdicts.
        question: The question that it decides.
        ask: Makes the messages of the request.
        read: Reads a reply.
        needs_images: Whether the request holds the images of the case.
        max_attempts: The number of requests, at least 1, that are sent until a reply holds a verdict.
        reads_truncated: Whether a truncated reply is read; otherwise it holds no verdict.
    """

    name: str
    question: str
    ask: Callable[[Case], tuple[Message, ...]]
    read: Callable[[str], Reading]
    needs_images: bool = False
    max_attempts: int = 1
    reads_truncated: bool = False

    def reading(self, reply: Answer) -> Reading:
        """Read a reply, unless it is truncated."""
        if reply.truncated and not self.reads_truncated:
            return Reading("undecided", reply.text)
        return self.read(reply.text)


class VectorScorer(Struct, frozen=True):
    """A scorer that reads a group by the vectors of its texts.

    Attributes:
        name: The name in verdicts.
        question: The question that it decides about pairs of answers.
        texts: The texts to embed, none of them empty.
        read: Takes their unit vectors in the same order, shape (texts, dimensions), and returns the group
            with scores and judgements.
    """

    name: str
    question: str
    texts: Callable[[Group], Sequence[str]]
    read: Callable[[Group, Vectors], Group]


Scorer = RuleScorer | ModelScorer | VectorScorer

_S = TypeVar("_S", RuleScorer, ModelScorer, VectorScorer)


def by_question(scorers: Iterable[Scorer], scorer_type: type[_S]) -> dict[str, _S]:
    """Select the scorers of one type.

    Args:
        scorers: The scorers of a benchmark (`Benchmark.scorers`).
        scorer_type: `RuleScorer`, `ModelScorer` or `VectorScorer`.

    Returns:
        Question -> its scorer of this type. A question that no scorer of this type decides is absent.
    """
    return {scorer.question: scorer for scorer in scorers if isinstance(scorer, scorer_type)}


# -- Why an answer got its verdict


class Explanation(Struct, frozen=True):
    """How the verdict on an answer came about: the rule that decided, and the words that it read.

    `option` is what was extracted from the response, '' for nothing. The rule is that of the rules if they
    gave the verdict, and the words are the response where it read none; otherwise the rule is the judge, and
    the words are those of its reply.
    """

    sample: str
    variant: str
    draw: int
    verdict: VerdictName
    option: str
    rule: str
    words: str


WORST_FIRST: Sequence[VerdictName] = ("error", "miss", "refused", "wrong", "undecided", "unscored", "right")
"""The order of explanations."""

LONGEST_WORDS = 160
"""The most characters of the words of an explanation."""


def explanations(
    outcomes: Iterable[Outcome], cases: Iterable[Case], scorers: Iterable[Scorer], verdicts: Iterable[Verdict]
) -> list[Explanation]:
    """Explain the verdicts that count on the answers of a judged group.

    Args:
        outcomes: The outcomes of the group, with their verdicts.
        cases: The cases of the group.
        scorers: The scorers of the benchmark.
        verdicts: The verdicts of all judges on the group.

    Returns:
        An explanation for each outcome. The rules read the answers again: a verdict that was
        stored by other rules differs, and the explanation says so.
    """
    scorer = by_question(scorers, RuleScorer).get("correct")
    by_index = {case.outcome_index: case for case in cases if case.question == "correct"}
    raw = {(one.targets, one.judge): one.raw for one in verdicts if one.question == "correct"}
    found = []
    for index, outcome in enumerate(outcomes):
        if outcome.status != "ok":
            rule, words = outcome.status.replace("_", " "), outcome.error or ""
        elif outcome.judge == "rules" and scorer is not None and index in by_index:
            reading = scorer.decide(by_index[index])
            rule, words = reading.rule or scorer.name, reading.words or reading.extracted or outcome.response
            if reading.verdict != outcome.verdict:
                rule = f"{rule}; these rules now give {reading.verdict}"
        else:
            rule = f"judge {outcome.judge}" if outcome.judge else ""
            words = raw.get(((outcome.key,), outcome.judge), "")
        words = " ".join(words.split())
        found.append(
            Explanation(
                sample=outcome.sample,
                variant=outcome.variant,
                draw=outcome.draw,
                verdict=outcome.verdict,
                option=outcome.extracted or "",
                rule=rule,
                words=words if len(words) <= LONGEST_WORDS else words[: LONGEST_WORDS - 1] + "…",
            )
        )
    return found


# -- Flags among the scores of an answer: yes-or-no readings of a response, which may be undecided

_UNDECIDED = "_undecided"


def flags(readings: Mapping[str, bool | None]) -> dict[str, float]:
    """The scores that stand for readings of a response.

    Args:
        readings: Whether something holds, by name; None if it is undecided.

    >>> flags({"refused": True, "names_shape": False, "names_lines": None})
    {'refused': 1.0, 'names_lines_undecided': 1.0}
    """
    held = {
        name: name if holds else name + _UNDECIDED for name, holds in readings.items() if holds is not False
    }
    return dict.fromkeys(held.values(), 1.0)


def flag(scores: Mapping[str, float], name: str) -> bool | None:
    """Read one flag.

    Returns:
        Whether it holds; None if it is undecided.

    >>> flag({"refused": 1.0}, "refused"), flag({}, "refused"), flag({"refused_undecided": 1.0}, "refused")
    (True, False, None)
    """
    return None if name + _UNDECIDED in scores else scores.get(name) == 1.0


def undecided_flags(scores: Mapping[str, float]) -> Iterator[str]:
    """The readings of a response that are undecided."""
    return (name.removesuffix(_UNDECIDED) for name in scores if name.endswith(_UNDECIDED))
