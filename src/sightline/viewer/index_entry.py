"""What the index keeps of a judged group, the whole group from its lines, and what an index depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, inf
from typing import NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import func, select

import sightline
from sightline.evaluation.folder import Lines
from sightline.formats.jsonl import decode_verdict
from sightline.metrics.consistency import normalised_answers
from sightline.scoring.letters import right_positions
from sightline.scoring.similarity import SIMILAR, THRESHOLD
from sightline.store import schema
from sightline.store.runs import no_run
from sightline.store.store import Store
from sightline.types import Group, Outcome, Verdict, VerdictName, each_value
from sightline.viewer.index_types import (
    INCOMPARABLE,
    Consistency,
    GroupDetail,
    GroupRow,
    IndexedImage,
    Mark,
    Misfit,
    ResponseLength,
    RightShare,
    SimilarityMatrix,
)

# -- A row for lists, the places of the group in the orders, the values of filters

QUESTION_CHARACTERS = 200
"""The most characters of a question that lists show."""

COMPARED = (SIMILAR, "same_meaning")
"""The questions of verdicts that say whether two answers are the same, in the order in which they count."""

_SHARES: tuple[RightShare, ...] = ("none", "some", "undecided", "unscored", "all")
"""The order of lists."""

_UNKNOWN: tuple[VerdictName, ...] = ("undecided", "error")
"""Verdicts that leave open whether the answer is right."""

_SIMILARITY_STEPS = 1 << 20


FacetName = tuple[str, str, str]
"""The field of a filter, the label, and the value."""


class GroupEntry(NamedTuple):
    """A group in the index. Of each order of groups, the least value comes first.

    Attributes:
        information: Its place among the most informative groups.
        length: Minus the number of words of the longest response.
        similarity: The least similarity of two answers; infinite if none was measured.
    """

    row: GroupRow
    facets: frozenset[FacetName]
    information: int
    length: int
    similarity: float


class _Agreement(NamedTuple):
    """Two answers of a group: their positions, whether they are the same, and whether they should be."""

    first: int
    second: int
    same: bool
    expected: bool


def group_entry(
    group: Group, verdicts: Sequence[Verdict], number: int, digests: Mapping[str, str]
) -> GroupEntry:
    """Describe a group; `digests` has the SHA-256 of images by path, as far as they are known."""
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
    image = next((path for outcome in group for path in outcome.images), "")
    row = GroupRow(
        number=number,
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
        image=IndexedImage(image, digests.get(image, "")) if image else None,
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
    return GroupEntry(
        row,
        frozenset(facets),
        _information(group, row),
        -words,
        inf if similarity is None else similarity,
    )


def response_length(words: int) -> ResponseLength:
    if words <= 5:
        return "1-5" if words else "empty"
    if words <= 50:
        return "6-50"
    return "51-200" if words <= 200 else "over-200"


def same_answer(group: Group, first: int, second: int) -> bool | None:
    """Whether two answers are the same: by a verdict on them, else by their normalised texts.

    None if an answer is missing or empty, or the verdict on them is undecided, or for likelihoods, which are
    numbers to compare.
    """
    one, other = group.outcomes[first], group.outcomes[second]
    if not (one.answered and other.answered) or "likelihood" in one.scores:
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
    right = right_positions(outcome.references, outcome.options)
    return frozenset(outcome.options[position] for position in right) or frozenset(outcome.references)


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


def _judge_views(verdicts: Sequence[Verdict]) -> set[str]:
    views = {"human"} if any(verdict.kind == "human" for verdict in verdicts) else set()
    return views | {"differ"} if judges_differ(verdicts) else views


def _labels(outcome: Outcome) -> Iterator[tuple[str, str]]:
    for name, values in outcome.labels.items():
        for value in each_value(values):
            yield name, value


def _information(group: Group, row: GroupRow) -> int:
    """Complete groups first; of these, inconsistent ones; then by right answers, then the least similar."""
    similarity = 1.0 if row.similarity is None else row.similarity
    step = round((max(-1.0, min(1.0, similarity)) + 1) / 2 * (_SIMILARITY_STEPS - 1))
    classes = ((not group.complete) * 2 + (row.consistency != "inconsistent")) * len(_SHARES)
    return (classes + _SHARES.index(row.right)) * _SIMILARITY_STEPS + step


def _shortened(question: str) -> str:
    line = " ".join(question[: 4 * QUESTION_CHARACTERS].split())
    return line if len(line) <= QUESTION_CHARACTERS else line[: QUESTION_CHARACTERS - 1] + "…"


# -- A group with everything about it, from its lines of answers.jsonl and verdicts.jsonl

_outcome = msgspec.json.Decoder(Outcome)


def read_lines(lines: Lines) -> tuple[tuple[Outcome, ...], tuple[Verdict, ...]]:
    # In JSON, line breaks within texts are escaped.
    outcomes = tuple(map(_outcome.decode, lines.answers.splitlines()))
    return outcomes, tuple(map(decode_verdict, lines.verdicts.splitlines()))


def group_detail(
    row: GroupRow,
    outcomes: tuple[Outcome, ...],
    verdicts: tuple[Verdict, ...],
    images: Mapping[str, IndexedImage],
) -> GroupDetail:
    shown = tuple(tuple(images[path] for path in outcome.images) for outcome in outcomes)
    return GroupDetail(row, outcomes, verdicts, shown, similarity_matrix(outcomes, verdicts))


def similarity_matrix(outcomes: Sequence[Outcome], verdicts: Sequence[Verdict]) -> SimilarityMatrix | None:
    """Arrange the similarities of the answers of a group; None if none was measured."""
    measured = {
        frozenset(verdict.targets): verdict.value
        for verdict in verdicts
        if verdict.question == SIMILAR and verdict.value is not None
    }
    if not measured:
        return None
    pools = len({outcome.variant for outcome in outcomes}) < len(outcomes)
    names = tuple(f"{one.variant} {one.draw}" if pools else one.variant for one in outcomes)
    values = tuple(
        tuple(
            measured.get(frozenset((one.key, other.key))) if one is not other else None for other in outcomes
        )
        for one in outcomes
    )
    return SimilarityMatrix(names, values, THRESHOLD)


# -- What an index depends on, in a form that is quick to compute at each visit

MOST_WAITING = 500
"""Of more requests without an answer, only the first ones are watched."""


class IndexKey(Struct, frozen=True):
    """The identity of a run in all stores, and a digest of what its index depends on."""

    uid: str
    digest: str


class Awaited(Struct, frozen=True):
    """Requests without an answer when a run was indexed; `last_attempt` is None unless judges failed."""

    keys: Sequence[str] = ()
    attempts: str = ""
    last_attempt: int | None = None


def index_key(store: Store, run: int) -> IndexKey:
    runs, probes = schema.runs.c, schema.probes.c
    with store.database.read() as connection:
        row = connection.core.execute(
            select(runs.body, runs.finished, runs.uid).where(runs.id == run)
        ).one_or_none()
        if row is None:
            raise no_run(run, store.name)
        extent = select(func.count(), func.max(probes.place)).where(probes.run == run)
        chunks, last = connection.core.execute(extent).one()
    body, finished, uid = row
    goes_on = store.answers.last_attempt() if finished is None else None
    digest = hashlib.sha256(sightline.__version__.encode())
    digest.update(bytes(body))
    digest.update(msgspec.json.encode([finished, chunks, last, goes_on]))
    return IndexKey(uid, digest.hexdigest())


def awaited(store: Store, keys: Sequence[str], *, judges_failed: bool) -> Awaited:
    last = store.answers.last_attempt() if judges_failed else None
    return Awaited(keys, _attempts(store, keys), last)


def is_current(store: Store, earlier: Awaited) -> bool:
    """Say whether nothing was answered since."""
    if earlier.last_attempt is not None and earlier.last_attempt != store.answers.last_attempt():
        return False
    return not earlier.keys or earlier.attempts == _attempts(store, earlier.keys)


def _attempts(store: Store, keys: Sequence[str]) -> str:
    counting = store.answers.counting([bytes.fromhex(key) for key in keys])
    numbers = sorted((key.hex(), number) for key, (number, _) in counting.items())
    return hashlib.sha256(msgspec.json.encode(numbers)).hexdigest()
