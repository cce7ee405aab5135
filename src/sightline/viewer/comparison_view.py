"""A comparison of two runs as pages show it: what changed, the differences, both responses side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sightline.metrics.flips import Change, ChangeCounts, paired_answers
from sightline.metrics.significance import corrected_together
from sightline.reporting.comparison import verdict
from sightline.reporting.notes import label_of
from sightline.reporting.table import LEAST_P_VALUE
from sightline.types import MetricValue, Outcome, VerdictName
from sightline.viewer.environment import shorten
from sightline.viewer.group_view import ImageSource, Piece, ShownImage, group_view, mark_differences
from sightline.viewer.index_types import ChangedGroup, ChangePage, ComparedMetric, RunComparison
from sightline.viewer.plots import PlotCell, Scale, difference_scale, measured

SIDE_CHARACTERS = 600
"""The characters of a response that stands beside another."""

TITLES: Mapping[Change, str] = {
    "lost": "Lost in B",
    "gained": "Gained in B",
    "both_wrong": "Both wrong",
    "both_right": "Both right",
    "unscored": "Not scored",
}


class DifferenceRow(Struct, frozen=True):
    """The difference of a metric: its values in both runs, and the changes behind it where they are known."""

    name: str
    base: MetricValue
    other: MetricValue
    difference: MetricValue
    p: str
    plot: PlotCell
    gained: int | None = None
    lost: int | None = None
    if_decided: tuple[float, float] | None = None


class DifferenceTable(Struct, frozen=True):
    """Differences of one metric under each value of a label, or of each run, on one scale."""

    title: str
    head: str
    rows: tuple[DifferenceRow, ...]
    scale: Scale
    of_runs: bool = False

    @property
    def has_changes(self) -> bool:
        """Whether gained and lost groups are known by this label: not if it varies within a group."""
        return any(row.gained is not None for row in self.rows)

    @property
    def has_undecided(self) -> bool:
        """Whether undecided verdicts could change a difference of the table."""
        return any(row.if_decided for row in self.rows)


class Side(Struct, frozen=True):
    """The answer of one run; words that the other answer lacks are marked."""

    verdict: VerdictName
    pieces: tuple[Piece, ...]
    notice: str


class ChangedProbe(Struct, frozen=True):
    """A probe in both runs."""

    label: str
    reference: str
    base: Side
    other: Side


class ChangedGroupView(Struct, frozen=True):
    """A group in both runs; `head` is the heading of what sets its probes apart."""

    number: int
    sample: str
    title: str
    head: str
    images: tuple[ShownImage, ...]
    pairs: tuple[ChangedProbe, ...]


class ChangeList(Struct, frozen=True):
    """Some of the groups with one change."""

    title: str
    total: int
    groups: tuple[ChangedGroupView, ...]


class ComparisonView(Struct, frozen=True):
    """Two runs, A and B, on the groups that both hold; `metric` is the one that is shown by label.

    `lead` is what the first difference shows, in a sentence; '' without a test.
    """

    a: str
    b: str
    lead: str
    counts: ChangeCounts
    unit: Literal["Groups", "Answers"]
    metrics: tuple[DifferenceRow, ...]
    by_label: tuple[DifferenceTable, ...]
    groups: int
    notes: tuple[str, ...]
    lists: tuple[ChangeList, ...] = ()
    metric: str = ""

    def count(self, change: Change) -> int:
        found: int = getattr(self.counts, change)
        return found

    @property
    def has_undecided(self) -> bool:
        """Whether undecided verdicts could change a difference of the first table."""
        return any(row.if_decided for row in self.metrics)

    def share(self, change: Change) -> float | None:
        """The share of a change among the scored ones, in percent; None if nothing is scored."""
        return 100 * self.count(change) / self.counts.scored if self.counts.scored else None


def comparison_view(
    comparison: RunComparison,
    names: tuple[str, str],
    lists: Sequence[ChangeList] = (),
    *,
    by: str = "",
) -> ComparisonView:
    """Arrange a comparison for a page; `by` is the metric by label, if it is shown, else the first one."""
    counts = comparison.counts[-1]
    changes = dict(comparison.by_label)
    overall = [one for one in comparison.metrics if one.difference.subset == "all"]
    by_name = {one.difference.metric: one for one in overall}
    wanted = [by_name[name] for name in comparison.leading if name in by_name] or overall
    names_shown = [one.difference.metric for one in wanted]
    metric = by if by in names_shown else next(iter(names_shown), "")
    return ComparisonView(
        *names,
        _lead(wanted[0], names) if wanted else "",
        counts,
        "Groups" if counts.unit == "groups" else "Answers",
        tuple(_row(one, one.difference.metric, difference_scale([])) for one in wanted),
        tuple(_by_label(comparison.metrics, metric, changes)),
        comparison.groups,
        tuple(comparison.notes),
        tuple(lists),
        metric,
    )


def table_of_runs(compared: Mapping[str, RunComparison], metric: str) -> DifferenceTable | None:
    """A row for each run, by its name, that is compared with one base; None for a single one.

    The p-values are those of `sightline compare`: corrected for the leading metrics of all runs together.
    """
    found = {
        name: (one, comparison.counts[-1])
        for name, comparison in compared.items()
        for one in comparison.metrics
        if (one.difference.metric, one.difference.subset) == (metric, "all")
    }
    if len(found) < 2:
        return None
    changes = [one.difference for one, _ in found.values()]
    scale = difference_scale(number for one in changes for number in (one.value, one.low, one.high))
    tests = corrected_together(
        [
            {
                (one.difference.metric, one.difference.subset): one.test
                for one in comparison.metrics
                if one.difference.subset == "all"
                and one.difference.metric in (*comparison.leading, metric)
                and one.test is not None
            }
            for comparison in (compared[name] for name in found)
        ]
    )
    rows = tuple(
        replace(
            _row(replace(one, test=corrected.get((metric, "all"))), name, scale),
            gained=counts.gained,
            lost=counts.lost,
        )
        for (name, (one, counts)), corrected in zip(found.items(), tests, strict=True)
    )
    return DifferenceTable(f"{metric} of each run, minus A", "run", rows, scale, of_runs=True)


def _lead(one: ComparedMetric, names: tuple[str, str]) -> str:
    return verdict(one.difference, one.test, one.better, names, one.if_decided)


def change_list(change: Change, page: ChangePage, shown: ImageSource) -> ChangeList:
    groups = tuple(changed_group_view(one, shown) for one in page.rows)
    return ChangeList(TITLES[change], page.total, groups)


def changed_group_view(changed: ChangedGroup, shown: ImageSource) -> ChangedGroupView:
    view = group_view(changed.base, shown)
    row = changed.base.row

    def label(one: Outcome) -> str:
        return next(probe.label for probe in view.probes if probe.outcome is one)

    return ChangedGroupView(
        row.number,
        row.sample,
        view.question or row.sample,
        view.own_part,
        view.images or tuple(image for probe in view.probes for image in probe.images),
        tuple(
            ChangedProbe(label(before), " · ".join(before.references), *_sides(before, after))
            for after, before in paired_answers(changed.other.outcomes, changed.base.outcomes)
        ),
    )


def _sides(base: Outcome, other: Outcome) -> tuple[Side, Side]:
    texts = [shorten(one.response, SIDE_CHARACTERS) for one in (base, other)]
    marked = mark_differences([text.text for text in texts])
    sides = [
        Side(one.verdict, pieces, one.error or text.notice)
        for one, text, pieces in zip((base, other), texts, marked, strict=True)
    ]
    return sides[0], sides[1]


def _by_label(
    metrics: Sequence[ComparedMetric], metric: str, changes: Mapping[str, ChangeCounts]
) -> list[DifferenceTable]:
    labelled: dict[str, list[ComparedMetric]] = {}
    for one in metrics:
        label, _ = label_of(one.difference)
        if label and one.difference.metric == metric:
            labelled.setdefault(label, []).append(one)
    tables = []
    for label, found in labelled.items():
        if len(found) < 2:
            continue
        changed = [one.difference for one in found]
        scale = difference_scale(number for one in changed for number in (one.value, one.low, one.high))
        rows = tuple(_row(one, label_of(one.difference)[1], scale, changes) for one in found)
        words = label.replace("_", " ")
        tables.append(DifferenceTable(f"{metric} by {words}, B minus A", words, rows, scale))
    return tables


def _row(
    one: ComparedMetric, name: str, scale: Scale, changes: Mapping[str, ChangeCounts] | None = None
) -> DifferenceRow:
    counts = (changes or {}).get(one.difference.subset)
    plot = PlotCell(scale, tuple(measured(one.difference)), one.difference.unit)
    gained, lost = (counts.gained, counts.lost) if counts else (None, None)
    p = _p_text(one.test.holm if one.test else None)
    return DifferenceRow(
        name, one.base, one.other, one.difference, p, plot, gained, lost, _changed_by_undecided(one)
    )


def _changed_by_undecided(one: ComparedMetric) -> tuple[float, float] | None:
    """The bounds of the difference, unless undecided verdicts leave it as it is."""
    return one.if_decided if one.if_decided and one.if_decided[0] != one.if_decided[1] else None


def _p_text(p: float | None) -> str:
    if p is None:
        return "–"
    return f"{p:.3f}" if p >= LEAST_P_VALUE else f"< {LEAST_P_VALUE}"
