"""Descriptions of runs that earlier versions stored are read with the option names of this version."""

from __future__ import annotations

from typing import Any

import msgspec

from sightline.results.description import EvaluationDescription, stored_description

STORED: dict[str, Any] = {
    "benchmark": "codis",
    "setting": "captions",
    "model": "mini",
    "identity": "weights 1",
    "judges": ["rules", "people:votes.jsonl"],
    "decide": "first",
    "chosen": {"picture": "caption", "seed": 0},
    "options": {"picture": "caption", "seed": 0, "drawn": True, "own": None},
    "data_digest": "d",
    "planned": 12,
}


def test_a_description_of_an_earlier_version_gets_the_current_option_names() -> None:
    description = stored_description(STORED)
    assert description.benchmark_options == {"image": "caption", "seed": 0}
    assert description.options == {"image": "caption", "seed": 0, "synthetic": True, "other_data": None}
    assert description.planned_samples == 12


def test_a_description_is_read_as_it_was_stored() -> None:
    description = stored_description(STORED)
    assert stored_description(msgspec.to_builtins(description)) == description
    assert msgspec.to_builtins(description).keys() >= STORED.keys()
    assert isinstance(description, EvaluationDescription)
