"""`sightline report`: tables of earlier runs, computed anew from the store, or of results folders."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import (
    add_options,
    add_plot,
    add_policy,
    add_printing,
    add_store,
    chart_request,
    check_policy_out,
    note_shadowed_runs,
)
from sightline.cli.printing import print_json
from sightline.errors import UserError
from sightline.text import print_note

if TYPE_CHECKING:
    from sightline.evaluation.options import Condition
    from sightline.reporting.table import ReportTable
    from sightline.store.store import Store
    from sightline.types import Result


EXAMPLE = """examples:
  sightline report                                  the latest finished run of ./sightline.db
  sightline report 3 base --by category             run 3 and the run named base, side by side
  sightline report results/a results/b --format csv > table.csv
  sightline report 3 4 5 --pivot --plot curves.png  a row for each model, a column for each varied value
  sightline report none cot domain emotion rhetoric --pivot --against GPT-4V
                                                    settings as columns, as in the paper (II-Bench, Table 4)
  sightline report base beta --pivot --by category --against GPT-4V --format latex
                                                    the layout of the paper's table: models are rows
  sightline report 3 --by category --plot by-category.svg --plot-columns 1
                                                    a forest plot for one column of a paper
  sightline report results/sizes                    the table of a sweep
  sightline report 3 4 --html report.html           both runs with their most informative groups, as one file
  sightline report 3 --why                          which variant breaks the groups
  sightline report 3 4 --why --clean asked          does the order of the runs change with the wording?
  sightline report 3 --answers 5 --by lines         the five most frequent answers for each number of lines
  sightline report 3 --by variant                   all metrics of each variant
  sightline report 3 blind --without-image          what the image adds, of a run and one without images
  sightline report results/a --fail-if 'acc_p<30'   exit status 5 if it holds
  sightline report results/a --policy policy.toml   the rules of a file; exit status 5 if one is not met
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
    add_policy(parser)
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="metric to print; may repeat (default: the leading ones of the benchmark)",
    )
    parser.add_argument(
        "--why",
        action="store_true",
        help="print in how many groups all, some or no answers are right, which variant differs alone from"
        " the others of its group, and each two variants side by side",
    )
    parser.add_argument(
        "--clean",
        metavar="VARIANT",
        help="with --why: put each other variant beside this one; of several runs, print whose order changes",
    )
    parser.add_argument(
        "--repeats",
        action="store_true",
        help="print how stable the answers to repeated requests are: consistency, variance, pass^k, pass@k",
    )
    parser.add_argument(
        "--corrections",
        type=Path,
        metavar="FILE|BENCHMARK",
        help="print the metrics as released and under corrected references: lines of id, value, reason and"
        " source, optionally variant; or those that come with a benchmark (mmvp)",
    )
    parser.add_argument(
        "--exclude",
        type=Path,
        metavar="FILE",
        help="print the metrics as released and without these samples: lines of id, reason and source",
    )
    parser.add_argument(
        "--without-image",
        action="store_true",
        help="compare each run without images (iibench:no-image, or --set image=off) with that of the same"
        " model with them",
    )
    parser.add_argument(
        "--answers",
        type=int,
        default=0,
        metavar="N",
        help="print the N most frequent answers, with --by those under each value of the label",
    )
    add_printing(parser, brief=True)
    add_store(parser)
    add_plot(parser, PLOT_KINDS, drawn="the table", metrics=True)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the tables; returns the exit status, 5 if a condition of --fail-if holds or a rule is not met."""
    from sightline.cli.printing import print_conditions_met, print_saved, print_tables
    from sightline.evaluation.folder import is_stored
    from sightline.evaluation.options import check_condition_metrics, parse_conditions
    from sightline.evaluation.reports import report_runs

    conditions = parse_conditions(options.fail_if)
    chart = chart_request(options)
    folders = [Path(word) for word in options.runs if not is_stored(word, options.store)]
    _check_html(options, mixed=0 < len(folders) < len(options.runs))
    note_shadowed_runs(map(str, folders), options.store)
    check_policy_out(options)
    kind = _check_own_tables(options)
    if kind == "policy":
        return _print_policy(options)
    if kind:
        print_tables(_own_tables(options, kind), options.format)
        return 0
    written = partial(_write_html, options) if options.html else None
    shown = report_runs(options.runs, options.store, options.against, written, options.by)
    if options.html and folders:
        _write_html_of_folders(folders, options)
    results = shown.results
    check_condition_metrics(conditions, {metric.metric for result in results for metric in result.metrics})
    pivoted = options.pivot or shown.has_sweep
    if chart is not None:
        from sightline.reporting.charts import draw_results

        draw_results(shown.points, chart, by=options.by, pivot=pivoted, runs=shown.names)
    if options.format == "json" and not pivoted:
        print_json(results[0] if len(results) == 1 else [*results, *shown.humans])
    else:
        whole = options.all or options.format != "table"
        tables = shown.tables(options.by, pivot=options.pivot, whole=whole, metrics=options.metric)
        shown_tables = tables[:1] if options.format == "csv" and not pivoted else tables
        print_tables(shown_tables, options.format, is_brief=not whole)
    for run, requests in shown.counts.items():
        print_saved(run, requests)
    if chart is not None:
        print_note(f"plot: {chart.path}")
    met = _describe_met(conditions, results, shown.names)
    print_conditions_met(met)
    return 5 if met else 0


def _print_policy(options: argparse.Namespace) -> int:
    from sightline.cli.printing import print_tables
    from sightline.evaluation.policy import (
        check_values,
        policy_status,
        policy_table,
        read_policy,
        write_policy,
    )
    from sightline.evaluation.reports import report_runs
    from sightline.reporting.tables import run_names

    policy = read_policy(options.policy)
    shown = report_runs(options.runs, options.store)
    checked = check_values(policy, shown.results, run_names(shown.results, shown.names))
    write_policy(options.policy_out, policy, checked)
    print_tables([policy_table(policy, checked)], options.format, is_brief=not options.all)
    return policy_status(checked)


def _own_tables(options: argparse.Namespace, kind: str) -> list[ReportTable]:
    from sightline.evaluation.reports import group_tables, without_image_tables
    from sightline.evaluation.revisions import read_revision, revised_tables

    if kind in ("corrections", "exclude"):
        revision = read_revision(options.corrections, options.exclude)
        return revised_tables(options.runs, options.store, revision, options.metric)
    if kind == "without_image":
        return without_image_tables(options.runs, options.store, options.metric)
    return group_tables(
        options.runs,
        options.store,
        by=options.by,
        answers=options.answers,
        why=options.why,
        clean=options.clean,
        repeats=options.repeats,
    )


def _check_html(options: argparse.Namespace, *, mixed: bool) -> None:
    """Raise UserError for options that only --html has, and for a mixture that it cannot show."""
    if options.html and mixed:
        raise UserError("--html shows runs of a store, or folders", expected="one of the two")
    if not options.html and (options.groups is not None or options.data):
        raise UserError("--groups and --data need --html", expected="--html FILE")
    if options.groups is not None and options.groups < 0:
        raise UserError("--groups is negative", found=options.groups, expected="0 or more")


_WITHIN = {"why", "clean", "repeats", "answers"}
OWN_TABLES: Mapping[str, set[str]] = {
    "corrections": {"exclude", "metric"},
    "exclude": {"corrections", "metric"},
    "without_image": {"metric"},
    "policy": set(),
    "answers": {*_WITHIN, "by"},
    "repeats": _WITHIN,
    "why": _WITHIN,
}
"""The options that print tables of their own, and those that go with each."""


def _check_own_tables(options: argparse.Namespace) -> str:
    """The first option that prints tables of its own, '' for none; UserError for others beside it."""
    kind = next((name for name in OWN_TABLES if getattr(options, name)), "")
    if options.clean and not options.why:
        raise UserError("--clean needs --why", expected="--why --clean VARIANT")
    if options.answers < 0:
        raise UserError("--answers is negative", found=options.answers, expected="1 or more")
    if kind:
        names = {"pivot", "html", "against", "fail_if", "plot", "metric", "by", *OWN_TABLES}
        others = sorted(names - OWN_TABLES[kind] - {kind})
        if given := [_flag(name) for name in others if getattr(options, name)]:
            raise UserError(f"{_flag(kind)} has no {', '.join(given)}: it prints tables of its own")
    return kind


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _write_html_of_folders(folders: Sequence[Path], options: argparse.Namespace) -> None:
    """Write the report of results folders, which become runs of a temporary store."""
    from sightline.viewer.opened import opened_store

    with opened_store(options.store, folders, [Path(folder) for folder in options.data]) as store:
        _write_html(options, store, range(1, len(folders) + 1))


def _write_html(options: argparse.Namespace, store: Store, numbers: Sequence[int]) -> list[Result]:
    from sightline.viewer.opened import indexable, write_html

    with indexable(store) as shown:
        results = write_html(
            shown,
            numbers,
            Path(options.html),
            folders=[Path(folder) for folder in options.data],
            groups=options.groups,
            against=options.against,
        )
    print_note(f"report: {options.html}")
    return results


def _describe_met(
    conditions: Sequence[Condition], results: Sequence[Result], runs: Sequence[str]
) -> list[str]:
    from sightline.evaluation.options import conditions_met
    from sightline.reporting.tables import run_names

    names = [f"{name}: " for name in run_names(results, runs)] if len(results) > 1 else [""]
    return [
        f"{name}{condition}"
        for name, result in zip(names, results, strict=True)
        for condition in conditions_met(conditions, result)
    ]
