"""Groups as the index returns them, made of a few fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sightline.types import Outcome, Usage, Verdict, VerdictName
from sightline.viewer.group_view import ShownImage
from sightline.viewer.index_types import GroupDetail, GroupRow, IndexedImage, Mark, SimilarityMatrix


def outcome(variant: str, response: str, verdict: VerdictName = "wrong", **more: Any) -> Outcome:
    """A line of answers.jsonl."""
    fields: dict[str, Any] = {
        "sample": "036",
        "draw": 0,
        "key": f"key-{variant}",
        "labels": {"category": "Attributes"},
        "status": "ok",
        "finish_reason": "stop",
        "usage": Usage(),
        "question": "Which way?",
        "judge": "rules",
        **more,
    }
    return Outcome(variant=variant, response=response, verdict=verdict, **fields)


def detail(
    outcomes: Sequence[Outcome],
    images: Sequence[Sequence[str]] = (),
    verdicts: Sequence[Verdict] = (),
    similarity: SimilarityMatrix | None = None,
    **row: Any,
) -> GroupDetail:
    """A group of these outcomes."""
    shown = tuple(tuple(map(IndexedImage, paths)) for paths in images) or ((),) * len(outcomes)
    fields: dict[str, Any] = {
        "number": 1,
        "sample": outcomes[0].sample,
        "draw": 0,
        "pooled": "",
        "question": outcomes[0].question,
        "marks": tuple(Mark(one.variant, one.draw, one.verdict) for one in outcomes),
        "right": "some",
        "consistency": "inconsistent",
        "flags": ("inconsistent",),
        "similarity": None,
        "labels": (("category", "Attributes"),),
        **row,
    }
    return GroupDetail(GroupRow(**fields), tuple(outcomes), tuple(verdicts), shown, similarity)


def shown(image: IndexedImage) -> ShownImage:
    """An image that needs no file."""
    return ShownImage(image.path, "data:image/webp;base64,AA==", 2, 2)
