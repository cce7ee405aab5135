"""Sections that are stacked bars: pairs by how many answers are right, shares of responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec import Struct

from sightline.benchmarks.report_sections import PairCounts, Shares
from sightline.metric_types import MetricValue
from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.types import RightShare
from sightline.reporting.html.run_results import NamedResult, number_of, words_of

PAIR_PARTS: Mapping[RightShare, str] = {
    "all": "both right",
    "some": "one right",
    "none": "none right",
    "undecided": "undecided",
}
"""The parts of the bars of pairs."""

UNDECIDED_PAIRS = (
    "undecided: pairs in which the number of right answers depends on an undecided verdict or no answer;"
    " metrics count these as not right"
)


class BarRow(Struct, frozen=True):
    """A row of stacked bars: the number and the share of each part; `extra` is a further column."""

    name: str
    run: str
    n: float
    parts: tuple[tuple[str, float, float], ...]
    extra: str = ""

    @property
    def label(self) -> str:
        """The bar in words."""
        return f"{self.name}: " + ", ".join(f"{part} {count:,.10g}" for part, count, _ in self.parts)

    @property
    def segments(self) -> list[tuple[str, str]]:
        """The start and the width of each part, in percent of the bar."""
        ends = [sum(share for _, _, share in self.parts[:nth]) for nth in range(len(self.parts))]
        return [
            (f"{start:.2f}%", f"{share:.2f}%") for start, (_, _, share) in zip(ends, self.parts, strict=True)
        ]


class Bars(Struct, frozen=True):
    """Stacked bars: parts that add up to all."""

    kind: ClassVar[str] = "bars"
    title: str
    head: str
    unit: str
    parts: tuple[str, ...]
    rows: tuple[BarRow, ...]
    several_runs: bool
    extra: str = ""
    notes: tuple[str, ...] = ()


def pair_counts(section: PairCounts, runs: Sequence[NamedResult]) -> Bars | None:
    """The pairs of which both answers, one or none are right, by label.

    Returns:
        The section; None without numbers.
    """
    found = [
        (name, run.name, counts, run.value(section.differ, _subset(section, name)))
        for name in [
            "",
            *dict.fromkeys(name for run in runs for name in run.by_label(section.both, section.label)),
        ]
        for run in runs
        if (counts := _right_counts(run, section.label, name))
    ]
    if not found:
        return None
    has_undecided = any(counts["undecided"] for _, _, counts, _ in found)
    parts = {share: words for share, words in PAIR_PARTS.items() if share != "undecided" or has_undecided}
    rows = [_pair_row(name or "All", run, counts, parts, differ) for name, run, counts, differ in found]
    notes = (UNDECIDED_PAIRS,) if has_undecided else ()
    several = len(runs) > 1
    return Bars(
        "Pairs",
        words_of(section.label),
        "pairs",
        tuple(parts.values()),
        tuple(rows),
        several,
        "same twice",
        notes,
    )


def _subset(section: PairCounts, name: str) -> str:
    return f"{section.label}={name}" if name else "all"


def _right_counts(run: NamedResult, label: str, name: str) -> dict[RightShare, int]:
    """The pairs of a run by how many of their answers are right; empty without scored pairs."""
    if run.count is None:
        return {}
    labels = ((label, name),) if name else ()
    counts = {share: run.count(GroupFilter(right=share, labels=labels)) for share in PAIR_PARTS}
    return counts if sum(counts.values()) else {}


def _pair_row(
    name: str,
    run: str,
    counts: Mapping[RightShare, int],
    shown: Mapping[RightShare, str],
    differ: MetricValue | None,
) -> BarRow:
    n = sum(counts.values())
    same = "" if differ is None or differ.value is None else f"{(100 - differ.value) * differ.n / 100:,.0f}"
    parts = tuple((words, counts[share], 100 * counts[share] / n) for share, words in shown.items())
    return BarRow(name, run, n, parts, same)


def shares(section: Shares, runs: Sequence[NamedResult]) -> Bars | None:
    """The shares of responses that add up to all, by label.

    Returns:
        The section; None without numbers.
    """
    first = section.parts[0][0]
    rows = []
    for name in dict.fromkeys(name for run in runs for name in run.by_label(first, section.label)):
        for run in runs:
            values = [run.value(metric, f"{section.label}={name}") for metric, _ in section.parts]
            defined = [one for one in values if one is not None and one.value is not None]
            if len(defined) == len(section.parts):
                parts = tuple(
                    (words, round(number_of(one) * one.n / 100), number_of(one))
                    for one, (_, words) in zip(defined, section.parts, strict=True)
                )
                rows.append(BarRow(name.replace(":", " : "), run.name, defined[0].n, parts))
    if not rows:
        return None
    words = tuple(words for _, words in section.parts)
    return Bars(section.title, words_of(section.label), "responses", words, tuple(rows), len(runs) > 1)
