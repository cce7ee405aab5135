"""Counted runs for leaderboards, without a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from sightline.evaluation.runs import RunLine
from sightline.types import PERCENT, MetricDefinition, MetricValue, Result
from sightline.viewer.index_types import IndexState, RunSummary


def run(
    number: int, model: str, value: float | None, listed: Mapping[str, Any] | None = None, **changed: Any
) -> RunSummary:
    result = Result(
        benchmark="codis",
        setting="default",
        model=model,
        model_identity=model,
        judge="rules",
        options={},
        samples=353,
        probes=706,
        errors=0,
        misses=0,
        undecided=0,
        truncated=0,
        versions={},
        data_digest="d",
        metrics=[MetricValue("acc_p", "all", value, 353, 216, 1.0, 99.0, "wilson")],
        metric_definitions={"acc_p": MetricDefinition("pairs", "higher", PERCENT)},
    )
    line = RunLine(
        number=number,
        name=None,
        tags=[],
        note="",
        task="codis:default",
        model=model,
        judges=["rules"],
        started="",
        limit=None,
        options={"split": "test", **(listed or {})},
        state="complete",
    )
    return RunSummary(line, IndexState("ready"), replace(result, **changed), 353)
