"""The metrics that compact views show."""

from __future__ import annotations

from pathlib import Path

from sightline.benchmarks.registry import benchmark_class
from sightline.cli.quickstart import _unpack
from sightline.reporting.tables import leading_metrics
from sightline.types import MetricValue


def value(metric: str, number: float | None, subset: str = "all") -> MetricValue:
    return MetricValue(metric, subset, number, 1, 1)


def test_the_value_over_complete_groups_is_shown_beside_one_that_differs() -> None:
    same = [value("acc", 10), value("con", 50), value("con_complete", 50)]
    failed = [value("acc", 10), value("con", 60), value("con_complete", 50)]
    assert leading_metrics("groups", [same]) == ["acc", "con"]
    assert leading_metrics("groups", [same, failed]) == ["acc", "con", "con_complete"]


def test_under_a_label_only_metrics_with_values_of_that_label_lead() -> None:
    run = [value("acc", 10), value("con", 50), value("acc", 10, "style=candy")]
    assert leading_metrics("groups", [run], "style") == ["acc"]


def test_every_view_of_a_run_begins_with_the_same_metric_also_where_similarity_is_unreliable() -> None:
    run = [value("acc", 10), value("con", 90), value("agree", 40)]
    assert leading_metrics("groups", [run]) == ["acc", "con"]
    assert leading_metrics("groups", [run, [*run, value("confused", 60)]]) == ["acc", "agree", "con"]


def test_without_references_agree_stands_before_the_metrics_of_unreliable_similarity() -> None:
    run = [value("acc", None), value("con", 90), value("agree", 40), value("confused", 60)]
    assert leading_metrics("groups", [run]) == ["agree", "acc", "con"]


def test_the_table_of_the_quickstart_begins_with_the_headline_of_each_benchmark(tmp_path: Path) -> None:
    for task in _unpack(tmp_path, mmr3=True):
        declared = benchmark_class(task.name.partition(":")[0]).leading_metrics
        assert task.metrics[0] == declared[0]
