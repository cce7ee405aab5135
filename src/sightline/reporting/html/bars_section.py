"""Sections that are stacked bars: pairs by how many answers are right, shares of responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from sightline.benchmarks.report_sections import PairCounts, Shares
from sightline.metric_types import MetricValue
from sightline.reporting.html.run_results import NamedResult, number_of, words_of
from sightline.reporting.notes import undecided_note


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

    Args:
        section: What the benchmark declares.
        runs: The runs.

    Returns:
        The section; None without numbers.
    """
    rows = []
    for name in [
        "all",
        *dict.fromkeys(name for run in runs for name in run.by_label(section.both, section.label)),
    ]:
        subset = name if name == "all" else f"{section.label}={name}"
        for run in runs:
            both, each, differ = (run.value(m, subset) for m in (section.both, section.each, section.differ))
            if both is not None and each is not None and both.n and each.n == 2 * both.n:
                rows.append(_pair_row("All" if name == "all" else name, run.name, both, each, differ))
    parts = ("both right", "one right", "none right")
    if not rows:
        return None
    several = len(runs) > 1
    notes = tuple(
        f"{run.name}: {note}" if several else note for run in runs for note in undecided_note(run.result, ())
    )
    return Bars("Pairs", words_of(section.label), "pairs", parts, tuple(rows), several, "same twice", notes)


def _pair_row(
    name: str, run: str, both: MetricValue, each: MetricValue, differ: MetricValue | None
) -> BarRow:
    """Counts of pairs from the shares of right pairs and of right answers."""
    two = round(number_of(both) * both.n / 100)
    one = round(number_of(each) * each.n / 100) - 2 * two
    counts = {"both right": two, "one right": one, "none right": both.n - two - one}
    same = "" if differ is None or differ.value is None else f"{(100 - differ.value) * differ.n / 100:,.0f}"
    parts = tuple((part, count, 100 * count / both.n) for part, count in counts.items())
    return BarRow(name, run, both.n, parts, same)


def shares(section: Shares, runs: Sequence[NamedResult]) -> Bars | None:
    """The shares of responses that add up to all, by label.

    Args:
        section: What the benchmark declares.
        runs: The runs.

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
