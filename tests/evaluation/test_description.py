"""Descriptions of runs are read as they were stored."""

from __future__ import annotations

from typing import Any

import msgspec

from sightline.evaluation.options import EvaluationDescription

STORED: dict[str, Any] = {
    "benchmark": "codis",
    "setting": "captions",
    "model": "mini",
    "identity": "weights 1",
    "judges": ["rules", "human:votes.jsonl"],
    "decide": "first",
    "benchmark_options": {"image": "caption", "seed": 0},
    "options": {"image": "caption", "seed": 0, "synthetic": True},
    "data_digest": "d",
    "planned_samples": 12,
}


def test_a_description_is_read_as_it_was_stored() -> None:
    description = msgspec.convert(STORED, EvaluationDescription)
    assert msgspec.convert(msgspec.to_builtins(description), EvaluationDescription) == description
    assert msgspec.to_builtins(description).keys() >= STORED.keys()
    assert isinstance(description, EvaluationDescription)
