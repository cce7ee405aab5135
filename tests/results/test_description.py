"""Descriptions of runs that earlier versions stored are read with the option names of this version."""

from __future__ import annotations

from typing import Any

import msgspec

from sightline.benchmarks.base import defaults
from sightline.registry import benchmark as find_benchmark
from sightline.results.description import EvaluationDescription, stored_description
from sightline.results.earlier_options import default_options

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
    assert description.benchmark_options["image"] == "caption"
    expected = {"image": "caption", "seed": 0, "synthetic": True, "other_data": None}
    assert expected.items() <= description.options.items()
    assert not {"picture", "drawn", "own"} & {*description.options, *description.benchmark_options}
    assert description.planned_samples == 12


def test_an_option_that_the_earlier_version_did_not_record_has_its_default() -> None:
    description = stored_description(STORED)
    assert description.options["judge_repeats"] == 1
    assert default_options("codis", "captions").keys() <= description.options.keys()
    benchmark = find_benchmark("codis")
    assert {**defaults(benchmark, benchmark.settings["captions"]), "seed": 0} == description.benchmark_options


def test_a_description_is_read_as_it_was_stored() -> None:
    description = stored_description(STORED)
    assert stored_description(msgspec.to_builtins(description)) == description
    assert msgspec.to_builtins(description).keys() >= STORED.keys()
    assert isinstance(description, EvaluationDescription)
