"""`sightline compare`: paired differences between runs, with confidence intervals and tests."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
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
from sightline.errors import UserError
from sightline.metrics.flips import LISTS
from sightline.text import print_note

if TYPE_CHECKING:
    from sightline.metrics.significance import Comparison
    from sightline.reporting.table import ReportTable
    from sightline.store.store import Store

EXAMPLE = """examples:
  sightline compare 3 4                        run 4 minus run 3, of ./sightline.db
  sightline compare 3 4 --by style --metric con --metric acc
  sightline compare base adapter               the same with the names of runs (--name)
  sightline compare 3 4,5,6                    runs 4, 5 and 6 (three seeds), each minus run 3, pooled
  sightline compare 4,5,6 7,8,9                run 7 minus 4, 8 minus 5 and 9 minus 6, pooled
  sightline compare 3 results/a                results folders, numbers and names of runs in any mixture
  sightline compare 3 4 --list lost            the answers that run 3 has right and run 4 has not
  sightline compare 3 4 --against GPT-4V       with the figures of a row of the paper
  sightline compare 3 4 --tests                all significance tests, and the smallest detectable difference
  sightline compare 3 4 --margin 2             is run 4 non-inferior, or equivalent, within 2 points?
  sightline compare 3 4 --fail-if worse        exit status 5 if run 4 is significantly worse
  sightline compare 3 4 --by category --plot differences.pdf
                                               the differences as a forest plot
  sightline runs list                          list the numbers and names of runs
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("base", type=_words, metavar="RUN[,RUN...]", help="number, name or results folder of the base run")
    add(
        "other",
        type=_words,
        metavar="RUN[,RUN...]",
        help="number, name or results folder of the run that is compared with the base",
    )
    add(
        "--metric",
        action="append",
        metavar="NAME",
        help="metric to compare; may repeat (default: the leading ones)",
    )
    add(
        "--tests",
        action="store_true",
        help="print all significance tests with their corrections and power too",
    )
    add(
        "--list",
        choices=LISTS,
        metavar="CHANGE",
        help=f"list the answers of this change: {', '.join(LISTS)} (--json without --list: all)",
    )
    add(
        "--margin",
        type=_margin,
        metavar="X",
        help="test whether the second run is non-inferior and equivalent within X percentage points",
    )
    loss = (
        "exit with status 5 if this difference is significant (Holm correction over the rows of the table) or"
        " has no value: worse (any metric of the table), 'acc_p: worse', 'miss: higher'; with --margin also"
        " not-non-inferior and not-equivalent; may repeat"
    )
    add("--fail-if", action="append", default=[], metavar="CONDITION", help=loss)
    add_options(parser, ["against"])
    add_printing(parser)
    add_store(parser)
    add_plot(parser, drawn="the differences")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the table; returns the exit status, 5 if a condition of --fail-if holds."""
    from sightline.cli.printing import print_conditions_met, print_tables
    from sightline.evaluation.compare import compare_runs, margin_verdicts, significance_of
    from sightline.evaluation.fail_if import not_applicable, parse_difference_conditions
    from sightline.evaluation.folder import is_stored
    from sightline.reporting.comparison import (
        check_label,
        check_rows,
        compared_metrics,
        comparison_table,
        margin_table,
        rows_of,
        tests_table,
    )
    from sightline.store.store import Store

    chart = chart_request(options)
    pairs = _pairs(options.base, options.other)
    words = dict.fromkeys(word for pair in pairs for word in pair)
    folders = [word for word in words if not is_stored(word, options.store)]
    note_shadowed_runs(folders, options.store)
    needs_store = len(folders) < len(words)
    store = Store.open(options.store, create=False) if needs_store else None
    try:
        runs = [
            (_run(base, store, options.store), _run(other, store, options.store)) for base, other in pairs
        ]
        comparison = compare_runs(store, runs, options.against)
    finally:
        if store is not None:
            store.close()
    requested = compared_metrics(options.metric or (), comparison, options.by)
    check_label(options.by, [comparison])
    rows = rows_of(comparison, requested, options.by)
    check_rows(options.metric or (), rows, comparison)
    verdicts = None if options.margin is None else margin_verdicts(comparison, rows, options.margin)
    conditions = parse_difference_conditions(options.fail_if, rows, comparison.definitions, verdicts)
    tests = significance_of(comparison, rows)
    tables = [comparison_table(comparison, rows, tests, full=options.format in ("csv", "json"))]
    if options.tests:
        tables.append(tests_table(comparison, rows, tests))
    if verdicts is not None:
        tables.append(margin_table(comparison, rows, verdicts, options.margin))
    if chart is not None:
        from sightline.reporting.charts import draw_comparison

        draw_comparison(comparison, rows, options.margin, chart)
    print_tables(_with_changes(tables, comparison, options.list, options.format), options.format)
    if chart is not None:
        print_note(f"plot: {chart.path}")
    bounds, absent = comparison.undecided_bounds, not_applicable(comparison)
    met = [
        line for condition in conditions for line in condition.met(rows, tests, bounds, not_applicable=absent)
    ]
    print_conditions_met(met)
    return 5 if met else 0


def _with_changes(
    tables: Sequence[ReportTable], comparison: Comparison, listed: str | None, form: str
) -> list[ReportTable]:
    """The tables, then those of changed answers; CSV holds the differences, or with --list the answers."""
    from sightline.reporting.comparison import answers_table, counts_table, listed_answers, sides_table

    def answers() -> ReportTable:
        full = form in ("csv", "json")
        return answers_table(comparison, listed_answers(comparison, listed), full=full)

    if form == "csv":
        return [answers()] if listed else [*tables]
    found = [*tables, counts_table(comparison)]
    if form == "json":
        return [*found, sides_table(comparison), answers()]
    return [*found, answers()] if listed else found


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _run(word: str, store: Store | None, url: str) -> int | Path:
    """The number of the run of the store that a word means, or a results folder."""
    from sightline.evaluation.folder import is_stored
    from sightline.evaluation.runs import find_run

    return Path(word) if store is None or not is_stored(word, url) else find_run(store, word)


def _margin(word: str) -> float:
    try:
        margin = float(word)
    except ValueError:
        margin = math.nan
    if not 0 < margin < math.inf:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of percentage points above 0")
    return margin


def _pairs(base: Sequence[str], other: Sequence[str]) -> list[tuple[str, str]]:
    if len(base) not in (1, len(other)):
        raise UserError(
            f"compare: {len(base)} base runs and {len(other)} compared runs",
            expected="one base run, or the same number of both",
        )
    return list(zip(base if len(base) > 1 else [*base] * len(other), other, strict=True))
