"""Reading results, also those of earlier versions."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.results.conftest import MakeResult

from sightline.metric_types import MetricDefinition, MetricValue
from sightline.results.earlier_options import default_options
from sightline.results.read_results import read_result
from sightline.results.run_options import different_options


def test_rows_by_answer_of_earlier_versions_get_the_name_of_their_estimator(
    make_result: MakeResult, tmp_path: Path
) -> None:
    rows = [("acc", "style=candy"), ("con", "all"), ("con", "style=candy"), ("s_c", "style=candy")]
    metrics = [MetricValue(*row, 50.0, 4, 4) for row in rows]
    definitions = {"con": MetricDefinition("pairs above 0.7", "higher", (0.0, 100.0))}
    file = tmp_path / "metrics.json"
    file.write_bytes(msgspec.json.encode(make_result(metrics=metrics, metric_definitions=definitions)))
    found = read_result(file)
    assert [(one.metric, one.subset) for one in found.metrics] == [
        ("acc", "style=candy"),
        ("con", "all"),
        ("con_by_response", "style=candy"),
        ("s_c_by_response", "style=candy"),
    ]
    assert "con_by_response" in found.metric_definitions
    options = default_options("groups", "mine.jsonl")
    current = make_result(options=options, metrics=[*metrics, MetricValue("con_complete", "all", 50.0, 4, 4)])
    file.write_bytes(msgspec.json.encode(current))
    assert read_result(file) == current


def test_the_agreement_with_humans_of_earlier_versions_gets_its_name(
    make_result: MakeResult, tmp_path: Path
) -> None:
    pair = ("agreement", "judges=ann and gpt-4")
    metrics = [MetricValue(*row, 50.0, 4, 4) for row in (pair, ("agreement", "all"))]
    file = tmp_path / "metrics.json"
    file.write_bytes(msgspec.json.encode(make_result(metrics=metrics)))
    found = read_result(file)
    assert [(one.metric, one.subset) for one in found.metrics] == [pair, ("agreement_with_humans", "all")]
    assert "agreement_with_humans" in found.metric_definitions


def test_an_option_that_an_earlier_version_did_not_record_is_no_difference(
    make_result: MakeResult, tmp_path: Path
) -> None:
    now = default_options("groups", "mine.jsonl")
    current, file = make_result(options=now), tmp_path / "metrics.json"
    for name in now:
        earlier = {option: value for option, value in now.items() if option != name}
        file.write_bytes(msgspec.json.encode(make_result(options=earlier)))
        assert not different_options([read_result(file)], [current])
    repeated = make_result(options={**now, "judge_repeats": 3})
    assert different_options([read_result(file)], [repeated]) == {"judge_repeats": ([1], [3])}
