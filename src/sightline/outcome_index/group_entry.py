"""What the index keeps of a judged group: a row for lists, its place in the order, the values of filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

from sightline.metrics.answer_pairs import normalised_answers
from sightline.outcome_index.types import (
    INCOMPARABLE,
    Consistency,
    GroupFacts,
    Mark,
    Misfit,
    ResponseLength,
    RightShare,
)
from sightline.scoring.letters import LETTERS
from sightline.scoring.similarity import SIMILAR
from sightline.types import Group, Outcome, Verdict, VerdictName

QUESTION_CHARACTERS = 200
"""The most characters of a question that lists show."""

COMPARED = (SIMILAR, "same_meaning")
"""The questions of verdicts that say whether two answers are the same, in the order in which they count."""

_SHARES: tuple[RightShare, ...] = ("none", "some", "undecided", "unscored", "all")
"""The order of lists."""

_UNKNOWN: tuple[VerdictName, ...] = ("undecided", "error")
"""Verdicts that leave open whether the answer is right."""

_SIMILARITY_STEPS = 1 << 20


class StoredRow(GroupFacts, frozen=True, array_like=True):
    """A row of a list as a block has it; `digest` is the raw SHA-256 of the image."""

    image: str
    digest: bytes
    misfits: tuple[Misfit, ...] = ()


class GroupEntry(NamedTuple):
    """A group in the index.

    `order` is smaller for a more informative group; `facets` holds field, label and value; `words` is the
    number of words of the longest response.
    """

    row: StoredRow
    order: int
    facets: frozenset[tuple[str, str, str]]
    words: int


class _Agreement(NamedTuple):
    """Two answers of a group: their positions, whether they are the same, and whether they should be."""

    first: int
    second: int
    same: bool
    expected: bool


def group_entry(group: Group, verdicts: list[Verdict], digest: bytes = b"") -> GroupEntry:
    """Derive what the index keeps of a group."""
    pairs = list(_agreements(group))
    wrong = [pair for pair in pairs if pair.same != pair.expected]
    consistency = _consistency(group, pairs)
    right, similarity = _right_share(group), _least_similarity(group)
    views = _judge_views(verdicts)
    flags = (
        *(["inconsistent"] if any(pair.expected for pair in wrong) else []),
        *(["same answer twice"] if any(pair.same for pair in wrong) else []),
        *(["judges differ"] if "differ" in views else []),
        *(["truncated"] if any(outcome.truncated for outcome in group) else []),
    )
    labels = tuple(dict.fromkeys(label for outcome in group for label in _labels(outcome)))
    row = StoredRow(
        sample=group.id,
        draw=group.draw,
        pooled=group.pooled,
        question=_shortened(group.outcomes[0].question),
        marks=tuple(Mark(one.variant, one.draw, one.verdict) for one in group),
        right=right,
        consistency=consistency,
        flags=flags,
        similarity=similarity,
        labels=labels,
        image=next((path for outcome in group for path in outcome.images), ""),
        digest=digest,
        misfits=tuple(Misfit(pair.first, pair.second, pair.same) for pair in wrong),
    )
    words = max(len(outcome.response.split()) for outcome in group)
    facets = {
        ("right", "", right),
        ("consistency", "", consistency or INCOMPARABLE),
        ("length", "", response_length(words)),
        *(("verdict", "", outcome.verdict) for outcome in group),
        *(("judges", "", view) for view in views),
        *(("label", name, value) for name, value in labels),
    }
    return GroupEntry(row, _order(group, row), frozenset(facets), words)


def response_length(words: int) -> ResponseLength:
    """The class of the longest response of a group."""
    if words <= 5:
        return "1-5" if words else "empty"
    if words <= 50:
        return "6-50"
    return "51-200" if words <= 200 else "over-200"


def same_answer(group: Group, first: int, second: int) -> bool | None:
    """Whether two answers of a group are the same: by a verdict on them, otherwise by their normalised texts.

    Returns:
        The decision; None if an answer is missing or empty, or the verdict on them is undecided.
    """
    one, other = group.outcomes[first], group.outcomes[second]
    if not (one.answered and other.answered):
        return None
    if one.key == other.key:
        return True
    verdict = _verdicts_on_pairs(group).get(frozenset((one.key, other.key)))
    if verdict is not None:
        return {"right": True, "wrong": False}.get(verdict.verdict)
    texts = normalised_answers(group)
    return texts[first] == texts[second] if texts[first] and texts[second] else None


def _verdicts_on_pairs(group: Group) -> dict[frozenset[str], Verdict]:
    def derive(judged: Group) -> dict[frozenset[str], Verdict]:
        return {
            frozenset(verdict.targets): verdict
            for question in reversed(COMPARED)
            for verdict in judged.judgements
            if verdict.question == question and len(verdict.targets) == 2
        }

    return group.once("verdicts on pairs", derive)


def _agreements(group: Group) -> Iterator[_Agreement]:
    expected = [_expected(outcome) for outcome in group]
    for first, second in combinations(range(len(group)), 2):
        same = same_answer(group, first, second)
        if same is not None:
            yield _Agreement(first, second, same, expected[first] == expected[second])


def _expected(outcome: Outcome) -> frozenset[str]:
    """The references; a letter stands for its option, which may have another letter in another variant."""
    by_letter = dict(zip(LETTERS, outcome.options, strict=False))
    return frozenset(by_letter.get(reference.strip(), reference) for reference in outcome.references)


def _consistency(group: Group, pairs: Sequence[_Agreement]) -> Consistency | None:
    if len(group) < 2:
        return None
    if any(pair.same != pair.expected for pair in pairs):
        return "inconsistent"
    return "consistent" if len(pairs) == comb(len(group), 2) else "undecided"


def _right_share(group: Group) -> RightShare:
    if not all(outcome.scored for outcome in group):
        return "unscored"
    right = sum(outcome.right for outcome in group)
    unknown = sum(outcome.verdict in _UNKNOWN for outcome in group)
    if right == len(group):
        return "all"
    if right and right + unknown < len(group):
        return "some"
    return "undecided" if unknown else "none"


def _least_similarity(group: Group) -> float | None:
    values = [
        verdict.value
        for verdict in group.judgements
        if verdict.question == SIMILAR and verdict.value is not None
    ]
    return min(values, default=None)


def judges_differ(verdicts: Iterable[Verdict]) -> bool:
    """Whether one judge calls an answer right, and another one wrong."""
    decided: dict[tuple[tuple[str, ...], str], set[str]] = {}
    for verdict in verdicts:
        if verdict.question == "correct" and verdict.verdict in ("right", "wrong"):
            decided.setdefault((verdict.targets, verdict.variant), set()).add(verdict.verdict)
    return any(len(names) > 1 for names in decided.values())


def _judge_views(verdicts: list[Verdict]) -> set[str]:
    views = {"human"} if any(verdict.kind == "human" for verdict in verdicts) else set()
    return views | {"differ"} if judges_differ(verdicts) else views


def _labels(outcome: Outcome) -> Iterator[tuple[str, str]]:
    for name, values in outcome.labels.items():
        for value in (values,) if isinstance(values, str) else values:
            yield name, value


def _order(group: Group, row: StoredRow) -> int:
    """Complete groups first; of these, inconsistent ones; then by right answers, then the least similar."""
    similarity = 1.0 if row.similarity is None else row.similarity
    step = round((max(-1.0, min(1.0, similarity)) + 1) / 2 * (_SIMILARITY_STEPS - 1))
    classes = ((not group.complete) * 2 + (row.consistency != "inconsistent")) * len(_SHARES)
    return (classes + _SHARES.index(row.right)) * _SIMILARITY_STEPS + step


def _shortened(question: str) -> str:
    line = " ".join(question[: 4 * QUESTION_CHARACTERS].split())
    return line if len(line) <= QUESTION_CHARACTERS else line[: QUESTION_CHARACTERS - 1] + "…"
