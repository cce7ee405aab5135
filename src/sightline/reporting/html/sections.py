"""The sections that a benchmark declares (`benchmarks/report_sections.py`), with their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.benchmarks.report_sections import (
    Against,
    ByJudge,
    ByLabel,
    Differences,
    PairCounts,
    ReportSection,
    Shares,
    Together,
)
from sightline.registry import benchmark_class
from sightline.reporting.html.bars_section import Bars, pair_counts, shares
from sightline.reporting.html.difference_section import DifferencesSection, differences_section
from sightline.reporting.html.forest_section import Forest, by_judge, by_label, corrected, together
from sightline.reporting.html.run_results import NamedResult, leading
from sightline.reporting.html.scatter_section import ScatterSection, against
from sightline.reporting.notes import label_of
from sightline.reporting.tables import MOST_ROWS

SectionView = Forest | Bars | ScatterSection | DifferencesSection


def section_views(runs: Sequence[NamedResult]) -> list[SectionView]:
    """The sections of some runs of one benchmark; those without numbers are left out."""
    declared = benchmark_class(runs[0].result.benchmark).report_sections or _by_default(runs)
    views = [view for section in declared if (view := _view(section, runs)) is not None]
    return [*views, *(corrected(metric, runs) for metric in _corrected_metrics(runs))]


def _by_default(runs: Sequence[NamedResult]) -> list[ReportSection]:
    metric = leading(runs)[0]
    labels = dict.fromkeys(
        label_of(one)[0] for run in runs for one in run.result.metrics if one.metric == metric
    )
    few = [label for label in labels if label and len(runs[0].by_label(metric, label)) <= MOST_ROWS]
    return [ByJudge(metric) if label == "judge" else ByLabel(metric, label) for label in few]


def _view(section: ReportSection, runs: Sequence[NamedResult]) -> SectionView | None:
    match section:
        case ByLabel():
            return by_label(section, runs)
        case PairCounts():
            return pair_counts(section, runs)
        case Shares():
            return shares(section, runs)
        case Against():
            return against(section, runs)
        case Together():
            return together(section, runs)
        case Differences():
            return differences_section(section, runs)
        case ByJudge():
            return by_judge(section, runs)


def _corrected_metrics(runs: Sequence[NamedResult]) -> list[str]:
    """The corrected metrics that lead; the first one if none of them does."""
    metrics = list(dict.fromkeys(one.metric for run in runs for one in run.result.corrected))
    return [name for name in metrics if name in leading(runs)] or metrics[:1]
