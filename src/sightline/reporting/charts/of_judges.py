"""The chart of a judge report: every judge compared with the majority of the humans."""

from __future__ import annotations

from sightline.judging.judge_results import JudgeReport
from sightline.reporting.charts.chart_values import Chart, ChartValue
from sightline.reporting.judges import with_short_names

MEASURES = ("roc_auc", "spearman", "agreement")
NAMES = {"roc_auc": "ROC-AUC", "spearman": "Spearman", "agreement": "agreement"}


def judges_chart(report: JudgeReport) -> Chart:
    """The judges over all answers."""
    values = [
        ChartValue(NAMES[name], row.judge, "", metric)
        for name in MEASURES
        for row in with_short_names(report).rows
        if row.subset == "all" and (metric := getattr(row, name)).value is not None
    ]
    return Chart(
        "Judges and metrics compared with the human majority",
        tuple(values),
        ranges={NAMES["spearman"]: (-1.0, 1.0)},
    )
