"""The metrics that compact views show."""

from __future__ import annotations

from sightline.metric_types import MetricValue
from sightline.reporting.leading import leading_metrics


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


def test_where_similarity_is_unreliable_in_a_run_agree_leads() -> None:
    run = [value("acc", 10), value("con", 90), value("agree", 40)]
    assert leading_metrics("groups", [run]) == ["acc", "con"]
    assert leading_metrics("groups", [run, [*run, value("confused", 60)]]) == ["agree", "acc", "con"]
