"""A group with everything about it, from its lines of answers.jsonl and verdicts.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from sightline.formats.verdicts import decode_verdict
from sightline.outcome_index.types import GroupDetail, GroupRow, IndexedImage, SimilarityMatrix
from sightline.results.folder import Lines
from sightline.scoring.similarity import SIMILAR, THRESHOLD
from sightline.types import Outcome, Verdict

_outcome = msgspec.json.Decoder(Outcome)


def read_lines(lines: Lines) -> tuple[tuple[Outcome, ...], tuple[Verdict, ...]]:
    """Decode the lines of a group."""
    # In JSON, line breaks within texts are escaped.
    outcomes = tuple(map(_outcome.decode, lines.answers.splitlines()))
    return outcomes, tuple(map(decode_verdict, lines.verdicts.splitlines()))


def group_detail(
    row: GroupRow,
    outcomes: tuple[Outcome, ...],
    verdicts: tuple[Verdict, ...],
    images: Mapping[str, IndexedImage],
) -> GroupDetail:
    """Put a group together."""
    shown = tuple(tuple(images[path] for path in outcome.images) for outcome in outcomes)
    return GroupDetail(row, outcomes, verdicts, shown, similarity_matrix(outcomes, verdicts))


def similarity_matrix(outcomes: Sequence[Outcome], verdicts: Sequence[Verdict]) -> SimilarityMatrix | None:
    """Arrange the similarities of the answers of a group.

    Returns:
        The similarities; None if none was measured.
    """
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
