"""Writes the report of runs of a store as one HTML file of a limited size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.formats.atomic_file import AtomicFile
from sightline.metric_types import Result
from sightline.outcome_index.compared_runs import ComparedRuns
from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.run_index import RunIndex
from sightline.reporting.html.comparison_view import ComparisonView, change_list, comparison_view
from sightline.reporting.html.group_view import ImageSource, group_view
from sightline.reporting.html.report import GroupList, PartContent, report_page
from sightline.reporting.html.run_results import NamedResult
from sightline.reporting.html.short_texts import without_servers
from sightline.reporting.html.thumbnails import thumbnails
from sightline.reporting.leading import leading_metrics
from sightline.reporting.tables import run_names
from sightline.reporting.varied_options import short_names
from sightline.results.run_names import are_named

MOST_BYTES = 5_000_000
"""The size that a report does not exceed."""

GROUPS = 12
"""The groups of each part, unless the user chooses another number."""

WIDTHS = (320, 200)
"""The widths of images in pixels, the first that fits."""

CHANGED_SHARE = 4
"""A comparison shows this part of the groups, from each list of changed ones."""

CHANGES: tuple[Literal["lost", "gained"], ...] = ("lost", "gained")
"""The lists of changed groups."""


class ReportedRun(Struct, frozen=True):
    """A run of a report; `label` is what the store calls it."""

    number: int
    label: str
    result: Result


def write_report(
    index: OutcomeIndex,
    runs: Sequence[ReportedRun],
    file: Path,
    *,
    date: str,
    groups: int = GROUPS,
) -> int:
    """Write a report. A report that would be too large has smaller images, then fewer groups, and says so."""
    for shown, width in _sizes(groups):
        notice = "" if shown == groups else f"{groups} groups of each part were asked for; {shown} fit"
        content = [_part(index, part, shown, width) for part in parts_of(runs)]
        page = report_page(content, date, notice).encode(errors="backslashreplace")
        if len(page) <= MOST_BYTES:
            with AtomicFile(file) as output:
                output.write(page)
            return shown
    raise UserError(
        "the report is larger than 5 MB without any group", file=file, expected="fewer runs in one report"
    )


def parts_of(runs: Sequence[ReportedRun]) -> list[list[ReportedRun]]:
    """Sort runs into parts: those of one benchmark with the same setting or the same samples."""
    parts: list[list[ReportedRun]] = []
    for run in runs:
        for part in parts:
            if any(_belong(run.result, other.result) for other in part):
                part.append(run)
                break
        else:
            parts.append([run])
    return parts


def names_of(runs: Sequence[ReportedRun]) -> list[str]:
    """What a page calls runs: their names if all have one, otherwise what distinguishes them."""
    if are_named([run.label for run in runs]):
        return [run.label for run in runs]
    short = short_names(run.result.model for run in runs)
    results = [
        replace(run.result, model=short[run.result.model], judge=without_servers(run.result.judge))
        for run in runs
    ]
    if len(set(short.values())) == len(runs) and len({(one.benchmark, one.setting) for one in results}) == 1:
        return [one.model for one in results]  # The notes say where judges differ.
    facts = {(one.model, one.benchmark, one.setting, one.judge) for one in results}
    return run_names(results, () if len(facts) == len(runs) else [run.label for run in runs])


def _belong(one: Result, other: Result) -> bool:
    same_samples = bool(one.ids_digest) and one.ids_digest == other.ids_digest
    return one.benchmark == other.benchmark and (one.setting == other.setting or same_samples)


def _sizes(groups: int) -> Iterator[tuple[int, int]]:
    """The number of groups and the width of images, from what is asked for to no groups."""
    for width in WIDTHS:
        yield groups, width
    while groups:
        groups //= 2
        yield groups, WIDTHS[-1]


def _part(index: OutcomeIndex, runs: Sequence[ReportedRun], groups: int, width: int) -> PartContent:
    named = tuple(
        NamedResult(name, run.result, index.open(run.number).count)
        for name, run in zip(names_of(runs), runs, strict=True)
    )
    first, *others = runs
    sources = [thumbnails(index.images(run.number), width) for run in runs]
    most = -(-groups // len(runs))
    lists = [
        _most_informative(index.open(run.number), name.name if others else "", most, shown)
        for run, name, shown in zip(runs, named, sources, strict=True)
        if groups
    ]
    comparisons, notes = [], []
    for other, name in zip(others, named[1:], strict=True):
        names = (named[0].name, name.name)
        try:
            compared = index.comparisons.build(first.number, other.number)
        except UserError as error:
            notes.append(f"{names[1]} is not compared with {names[0]}: {error}")
        else:
            comparisons.append(_comparison(compared, first, other, names, groups, sources[0]))
    return PartContent(named, tuple(lists), tuple(comparisons), tuple(notes))


def _comparison(
    compared: ComparedRuns,
    base: ReportedRun,
    other: ReportedRun,
    names: tuple[str, str],
    groups: int,
    shown: ImageSource,
) -> ComparisonView:
    """The comparison of two runs, with some of the groups that became right or wrong."""
    most = (groups + CHANGED_SHARE - 1) // CHANGED_SHARE
    lists = [change_list(change, compared.page(change, limit=most), shown) for change in CHANGES if most]
    metrics = [base.result.metrics, other.result.metrics]
    return comparison_view(
        compared.summary, names, lists, shown=leading_metrics(base.result.benchmark, metrics)
    )


def _most_informative(index: RunIndex, name: str, groups: int, shown: ImageSource) -> GroupList:
    """The groups of a run to look at; `name` is that of the run where the part has several."""
    page = index.page(limit=groups)
    views = tuple(group_view(one, shown) for one in index.details(page.rows))
    of = f" of {name}" if name else ""
    return GroupList(f"Most informative groups{of}", f"{len(views):,} of {page.total:,} groups", views)
