"""The content of a report: its parts, from results, groups and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

import sightline
from sightline.metric_types import MetricValue, Result
from sightline.registry import benchmark_class
from sightline.reporting.html.comparison_view import ComparisonView
from sightline.reporting.html.environment import content_security_policy, environment, stylesheet
from sightline.reporting.html.figures import interval, number
from sightline.reporting.html.group_view import GroupView
from sightline.reporting.html.headline import ResultTable, Stat, result_table, stats
from sightline.reporting.html.run_results import NamedResult, leading, meaning
from sightline.reporting.html.sections import SectionView, section_views
from sightline.reporting.notes import run_notes, shared_notes
from sightline.reporting.option_texts import compact
from sightline.reporting.varied_options import short_names
from sightline.results.run_names import are_named

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
        """The verdicts that occur, for the legend."""
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
    lede: str
    stats: tuple[Stat, ...]
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
    """The HTML of a report."""
    made = tuple(map(_part, parts))
    report = Report(_title(parts), date, _lede(parts, made), made, notice=notice)
    template = environment().get_template("report.html")
    return template.render(
        report=report,
        open_groups=OPEN_GROUPS,
        css=Markup(stylesheet()),
        policy=content_security_policy(),
    )


def _part(content: PartContent) -> ReportPart:
    runs = content.runs
    task = _task(runs[0].result)
    table = result_table(runs)
    compared = any(not row.is_run and row.source for row in (*table.rows, *table.more))
    return ReportPart(
        task=task,
        heading=f"{_short_title(runs[0].result)}, {task}",
        lede=_result_line(runs),
        stats=tuple(stats(runs[0])) if len(runs) == 1 else (),
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
    return (f"{benchmark_class(parts[0].runs[0].result.benchmark).title}.", made[0].lede)


def _result_line(runs: Sequence[NamedResult]) -> str:
    """The first metric in a sentence, for each run."""
    name = leading(runs)[0]
    values = [
        f"{run.name} {number(one.value, one.unit)}{UNITS[one.unit]}"
        f" {interval(one.low, one.high, one.unit, one.interval)}".rstrip()
        + f", n {one.n:,.10g}"
        + _undecided(one)
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
