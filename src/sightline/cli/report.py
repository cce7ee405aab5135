"""`sightline report`: tables of earlier runs, computed anew from the store, or of results folders."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import (
    add_options,
    add_plot,
    add_printing,
    add_store,
    chart_request,
    note_shadowed_runs,
)
from sightline.cli.printing import print_json
from sightline.errors import UserError, needs_extra
from sightline.text import print_line, print_note

if TYPE_CHECKING:
    from sightline.engine.limits import Counts
    from sightline.evaluation.fail_if import Condition
    from sightline.evaluation.runs import EndpointLine
    from sightline.reporting.notes import ResultPoint
    from sightline.store.store import Store
    from sightline.types import Result


EXAMPLE = """examples:
  sightline report                                  the latest finished run of ./sightline.db
  sightline report --endpoints                      all checks of endpoints
  sightline report 3 base --by category             run 3 and the run named base, side by side
  sightline report results/a results/b --format csv > table.csv
  sightline report 3 4 5 --pivot --plot curves.png  a row for each model, a column for each varied value
  sightline report base beta --pivot --by category --against GPT-4V --format latex
                                                    the layout of the paper's table: models are rows
  sightline report 3 --by category --plot by-category.svg --plot-columns 1
                                                    a forest plot for one column of a paper
  sightline report results/sizes                    the table of a sweep
  sightline report 3 4 --html report.html           both runs with their most informative groups, as one file
  sightline report results/a --fail-if 'acc_p<30'   exit status 5 if it holds
"""


PLOT_KINDS = ("forest", "bars", "radar", "scatter", "curves", "matrix")


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="number or name of a run, or folder of results or of a sweep (default: the latest run)",
    )
    parser.add_argument(
        "--endpoints", action="store_true", help="list when which endpoint was checked, and the result"
    )
    parser.add_argument(
        "--pivot",
        action="store_true",
        help="print a row for each model and a column for each value of --by, or varied value: the layout of"
        " the papers' tables, also with --format latex",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write a report of the runs with their groups as one HTML file"
    )
    parser.add_argument(
        "--groups",
        type=int,
        metavar="N",
        help="with --html: groups of each benchmark and setting, the most informative first (default: 12)",
    )
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="DIR",
        help="with --html: another data folder that holds the images; may repeat",
    )
    add_options(parser, ["against", "fail_if"])
    add_printing(parser)
    add_store(parser)
    add_plot(parser, PLOT_KINDS, drawn="the table", metrics=True)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the tables; returns the exit status, 5 if a condition of --fail-if holds."""
    from sightline.cli.printing import print_conditions_met, print_pivot, print_results
    from sightline.evaluation.fail_if import check_condition_metrics, parse_conditions
    from sightline.evaluation.folder import is_stored, is_sweep, read_result
    from sightline.evaluation.runs import (
        find_run,
        latest_finished_run,
        list_endpoints,
        name_or_number,
        read_stored_run,
    )
    from sightline.reporting.notes import options_text, result_points
    from sightline.store.store import Store

    conditions = parse_conditions(options.fail_if)
    chart = chart_request(options)
    if options.endpoints and conditions:
        raise UserError("--endpoints prints no metrics for --fail-if", expected="one of the two")
    stored = [word for word in options.runs if is_stored(word, options.store)]
    folders = [Path(word) for word in options.runs if word not in stored]
    _check_html(options, mixed=bool(stored and folders))
    note_shadowed_runs(map(str, folders), options.store)
    swept = {folder: _read_points(folder, options.against) for folder in folders if is_sweep(folder)}
    results: list[Result] = []
    names: list[str] = []
    counts: dict[str, Counts] = {}
    for folder in folders:
        if folder in swept:
            results += [point.result for point in swept[folder]]
            names += [f"{folder}: {options_text(point.values)}" for point in swept[folder]]
        else:
            results.append(_with_rows(read_result(folder), options.against))
            names.append(str(folder))
    if stored or options.endpoints or not folders:
        store = Store.open(options.store, create=False)
        try:
            if options.endpoints:
                _print_endpoints(list_endpoints(store), options.format)
                return 0
            numbers = [find_run(store, word) for word in stored]
            results += _of_store(store, numbers, options)
            shown = numbers or [latest_finished_run(store)[0].number]
            names += [name_or_number(store, number) for number in shown]
            counts = {f"run {number}": read_stored_run(store, number).counts for number in shown}
        finally:
            store.close()
    if options.html and folders:
        _write_html_of_folders(folders, options)
    check_condition_metrics(conditions, {metric.metric for result in results for metric in result.metrics})
    # A sweep records its varied options; those of other results are the options that differ.
    points = next(iter(swept.values())) if len(options.runs) == len(swept) == 1 else result_points(results)
    pivoted = bool(options.pivot or swept)
    if chart is not None:
        from sightline.reporting.charts import draw_results

        draw_results(points, chart, by=options.by, pivot=pivoted, runs=names)
    if pivoted:
        print_pivot(points, options.format, options.by)
    else:
        print_results(results, options.format, options.by, names)
    _print_saved(counts)
    if chart is not None:
        print_note(f"plot: {chart.path}")
    met = _describe_met(conditions, results, names)
    print_conditions_met(met)
    return 5 if met else 0


def _print_saved(counts: Mapping[str, Counts]) -> None:
    from sightline.cli.printing import print_saved

    for run, requests in counts.items():
        print_saved(run, requests)


def _check_html(options: argparse.Namespace, *, mixed: bool) -> None:
    """Raise UserError for options that only --html has, and for those that it excludes."""
    if options.html and options.endpoints:
        raise UserError("--html is the report of runs", expected="no --endpoints")
    if options.html and mixed:
        raise UserError("--html shows runs of a store, or folders", expected="one of the two")
    if not options.html and (options.groups is not None or options.data):
        raise UserError("--groups and --data need --html", expected="--html FILE")
    if options.groups is not None and options.groups < 0:
        raise UserError("--groups is negative", found=options.groups, expected="0 or more")


def _write_html_of_folders(folders: Sequence[Path], options: argparse.Namespace) -> None:
    """Write the report of results folders, which become runs of a temporary store."""
    from sightline.viewer.opened import opened_store

    data = [Path(folder) for folder in options.data]
    with opened_store(options.store, folders, data) as store:
        numbers = range(1, len(folders) + 1)
        write_html(
            store,
            numbers,
            Path(options.html),
            folders=data,
            groups=options.groups,
            against=options.against,
        )


def _of_store(store: Store, numbers: Sequence[int], options: argparse.Namespace) -> list[Result]:
    """The results of runs, or of the latest one; with --html, their report is written too."""
    from sightline.evaluation.result import recompute
    from sightline.evaluation.runs import latest_finished_run

    if not options.html:
        return [recompute(store, number, options.against) for number in numbers or (None,)]
    return write_html(
        store,
        numbers or [latest_finished_run(store)[0].number],
        Path(options.html),
        folders=[Path(folder) for folder in options.data],
        groups=options.groups,
        against=options.against,
    )


def _describe_met(
    conditions: Sequence[Condition], results: Sequence[Result], runs: Sequence[str]
) -> list[str]:
    from sightline.evaluation.fail_if import conditions_met
    from sightline.reporting.tables import run_names

    names = [f"{name}: " for name in run_names(results, runs)] if len(results) > 1 else [""]
    return [
        f"{name}{condition}"
        for name, result in zip(names, results, strict=True)
        for condition in conditions_met(conditions, result)
    ]


def _with_rows(result: Result, against: Sequence[str]) -> Result:
    """The result with the published figures of the rows that the user names, if any."""
    from sightline.benchmarks.published import add_published

    return add_published(result, *against) if against else result


def _read_points(folder: Path, against: Sequence[str]) -> list[ResultPoint]:
    """The results of a sweep, with the values of its varied options."""
    from sightline.evaluation.folder import read_sweep
    from sightline.reporting.notes import ResultPoint

    return [
        ResultPoint(_with_rows(point.result, against), point.values)
        for point in read_sweep(folder).points
        if point.result
    ]


def _print_endpoints(endpoints: Sequence[EndpointLine], form: str) -> None:
    if form == "json":
        print_json(endpoints)
        return
    for one in endpoints:
        detail = f": {one.detail}" if one.detail else ""
        print_line(f"{one.time}  {one.host:<22} {one.identity}, {one.result}, asked {one.asked}{detail}")


# -- `sightline report RUN... --html FILE`: the report of runs of a store as one HTML file


def write_html(
    store: Store,
    numbers: Sequence[int],
    file: Path,
    *,
    folders: Sequence[Path] = (),
    groups: int | None = None,
    against: Sequence[str] = (),
) -> list[Result]:
    """Index the runs, write their report and say where it is.

    Without `groups`, each part has the default number; without `against`, the published rows of each run.
    """
    from sightline.benchmarks.published import add_published
    from sightline.evaluation.runs import name_or_number
    from sightline.viewer.index import OutcomeIndex, index_run

    with needs_extra("web", "a report as HTML needs Jinja2"):
        from sightline.viewer.html_report import GROUPS, ReportedRun, write_report
    index = OutcomeIndex(store, folders)
    runs = []
    for number in numbers:
        index_run(index, store, number)
        result = index.open(number).result
        result = add_published(result, *against) if against else result
        runs.append(ReportedRun(number, name_or_number(store, number), result))
    today = datetime.now().astimezone().strftime("%d %B %Y").lstrip("0")
    write_report(index, runs, file, date=today, groups=GROUPS if groups is None else groups)
    print_note(f"report: {file}")
    return [run.result for run in runs]
