"""Writes the report of runs of a store as one HTML file of a limited size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

import sightline
from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.formats.files import AtomicFile
from sightline.formats.jsonl import are_named
from sightline.reporting.notes import compact, judge_errors, run_notes, shared_notes, short_names
from sightline.reporting.tables import run_names, warnings_of
from sightline.types import MetricValue, Result
from sightline.viewer.comparison_view import ComparisonView, change_list, comparison_view
from sightline.viewer.environment import (
    content_security_policy,
    environment,
    interval,
    number,
    stylesheet,
    without_servers,
)
from sightline.viewer.group_view import GroupView, ImageSource, group_view, thumbnails
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.plots import NamedResult, leading, meaning
from sightline.viewer.run_index import ComparedRuns, RunIndex
from sightline.viewer.sections import ResultTable, SectionView, Stat, result_table, section_views, stats

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
            compared = index.compare(first.number, other.number)
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
    return comparison_view(compared.summary, names, lists)


def _most_informative(index: RunIndex, name: str, groups: int, shown: ImageSource) -> GroupList:
    """The groups of a run to look at; `name` is that of the run where the part has several."""
    page = index.page(limit=groups)
    views = tuple(group_view(one, shown) for one in index.details(page.rows))
    of = f" of {name}" if name else ""
    return GroupList(f"Most informative groups{of}", f"{len(views):,} of {page.total:,} groups", views)


# -- The content of a report: its parts, from results, groups and comparisons

UNITS: Mapping[str, str] = {"percent": "\N{NO-BREAK SPACE}%", "points": " points", "number": ""}


VERSIONS = {"reported": "reported model version", "judges": "reported judge version"}
"""Entry of `versions` in metrics.json -> what a reader calls it."""


OPEN_GROUPS = 3
"""The groups of a list that are shown at once; the others are folded."""


class GroupList(Struct, frozen=True):
    """Some groups of a run under a heading."""

    title: str
    subtitle: str
    views: tuple[GroupView, ...]

    @property
    def verdicts(self) -> list[str]:
        return list(dict.fromkeys(probe.verdict for view in self.views for probe in view.probes))


class RunFacts(Struct, frozen=True):
    """How a run was made."""

    name: str
    facts: tuple[tuple[str, str], ...]


class PartContent(Struct, frozen=True):
    """What a part is made of: the runs of one benchmark and setting, the groups and comparisons to show."""

    runs: tuple[NamedResult, ...]
    groups: tuple[GroupList, ...] = ()
    comparisons: tuple[ComparisonView, ...] = ()
    notes: tuple[str, ...] = ()


class ReportPart(Struct, frozen=True):
    """A benchmark and setting in a report."""

    task: str
    heading: str
    leads: tuple[str, ...]
    lede: str
    stats: tuple[Stat, ...]
    warnings: tuple[str, ...]
    table: ResultTable | None
    table_title: str
    sections: tuple[SectionView, ...]
    groups: tuple[GroupList, ...]
    comparisons: tuple[ComparisonView, ...]
    runs: tuple[RunFacts, ...]
    notes: tuple[str, ...]


class Report(Struct, frozen=True):
    """A report; `notice` says what was left out."""

    title: str
    date: str
    lede: tuple[str, ...]
    parts: tuple[ReportPart, ...]
    version: str = sightline.__version__
    notice: str = ""


def report_page(parts: Sequence[PartContent], date: str, notice: str = "") -> str:
    made = tuple(map(_report_part, parts))
    report = Report(_title(parts), date, _lede(parts, made), made, notice=notice)
    template = environment().get_template("report.html")
    return template.render(
        report=report,
        open_groups=OPEN_GROUPS,
        css=Markup(stylesheet()),
        policy=content_security_policy(),
    )


def _report_part(content: PartContent) -> ReportPart:
    runs = content.runs
    task = _task(runs[0].result)
    table = result_table(runs)
    compared = any(not row.is_run and row.source for row in (*table.rows, *table.more))
    return ReportPart(
        task=task,
        heading=f"{_short_title(runs[0].result)}, {task}",
        leads=tuple(one.lead for one in content.comparisons if one.lead),
        lede=_result_line(runs),
        stats=tuple(stats(runs[0])) if len(runs) == 1 else (),
        warnings=tuple(shared_notes([(run.name, warnings_of(run.result)) for run in runs])),
        table=table if compared or len(runs) > 1 else None,
        table_title="Result beside published values" if compared else "Results",
        sections=tuple(section_views(runs)),
        groups=content.groups,
        comparisons=content.comparisons,
        runs=tuple(map(_facts, runs)),
        notes=(*content.notes, *shared_notes([(run.name, run_notes(run.result)) for run in runs])),
    )


def _title(parts: Sequence[PartContent]) -> str:
    runs = [run for part in parts for run in part.runs]
    names = list(dict.fromkeys(run.name for run in runs))
    models = names if are_named(names) else list(short_names(run.result.model for run in runs).values())
    titles = list(dict.fromkeys(_short_title(run.result) for run in runs))
    named = " and ".join(models) if len(models) < 3 else f"{len(models)} models"
    where = ", ".join(titles) if len(titles) < 5 else f"{len(titles)} benchmarks"
    value = _first_value(runs[0]) if len(runs) == 1 else ""
    return f"{named} on {where}" + (f": {value}" if value else "")


def _lede(parts: Sequence[PartContent], made: Sequence[ReportPart]) -> tuple[str, ...]:
    if len(parts) > 1:
        return (f"{sum(len(part.runs) for part in parts)} runs of {len(parts)} benchmarks and settings.",)
    benchmark = benchmark_class(parts[0].runs[0].result.benchmark)
    return (*(f"{lead}." for lead in made[0].leads), f"{benchmark.title}.", made[0].lede)


def _result_line(runs: Sequence[NamedResult]) -> str:
    name = leading(runs)[0]
    values = [
        f"{run.name} {number(one.value, one.unit)}{UNITS[one.unit]}"
        f" {interval(one.low, one.high, one.unit, one.interval)}".rstrip()
        + f", n {one.n:,.10g}"
        + _undecided(one)
        + (f", judge errors: {judged}" if (judged := judge_errors(run.result)) else "")
        for run in runs
        if (one := run.value(name)) is not None and one.value is not None
    ]
    explained = f"{name}, {words}" if (words := meaning(runs, name)) else name
    return f"{explained}: {'; '.join(values) or 'no value'}."


def _undecided(one: MetricValue) -> str:
    """What undecided verdicts could change."""
    if_right = one.changed_if_right
    return "" if if_right is None else f" ({number(if_right, one.unit)} if all undecided verdicts were right)"


def _first_value(run: NamedResult) -> str:
    value = run.value(leading([run])[0])
    if value is None or value.value is None:
        return ""
    return f"{value.metric} {number(value.value, value.unit)}{UNITS[value.unit]}"


def _facts(run: NamedResult) -> RunFacts:
    result = run.result
    facts = {
        "model": result.model,
        "task": _task(result),
        "judge": result.judge,
        "model identity": result.model_identity,
        "data digest": result.data_digest,
        **{VERSIONS.get(name, name): _joined(value) for name, value in result.versions.items() if value},
    }
    return RunFacts(run.name, tuple(facts.items()))


def _joined(value: Any) -> str:
    return ", ".join(map(compact, value)) if isinstance(value, list) else compact(value)


def _task(result: Result) -> str:
    return f"{result.benchmark}:{result.setting}"


def _short_title(result: Result) -> str:
    title = benchmark_class(result.benchmark).title
    return title.partition(":")[0] or result.benchmark
