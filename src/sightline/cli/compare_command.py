"""`sightline compare`: paired differences between runs, with confidence intervals and tests."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_printing, add_store
from sightline.errors import UserError

EXAMPLE = """examples:
  sightline compare 3 4                        run 4 minus run 3, of ./sightline.db
  sightline compare 3 4 --by style --metric con --metric acc
  sightline compare 3 4,5,6                    runs 4, 5 and 6 (three seeds), each minus run 3, pooled
  sightline compare 4,5,6 7,8,9                run 7 minus 4, 8 minus 5 and 9 minus 6, pooled
  sightline compare 3 4 --tests                all significance tests, and the smallest detectable difference
  sightline compare 3 4 --fail-if worse        exit status 5 if run 4 is significantly worse
  sightline report --list                      list the numbers of runs
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("base", type=_runs, metavar="RUN[,RUN...]", help="number of the base run")
    add("other", type=_runs, metavar="RUN[,RUN...]", help="number of the run that is compared with the base")
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
    loss = (
        "exit with status 5 if this difference is significant (Holm correction over the rows of the table) or"
        " has no value: worse (any metric of the table), 'acc_p: worse', 'miss: higher'; may repeat"
    )
    add("--fail-if", action="append", default=[], metavar="CONDITION", help=loss)
    add_printing(parser)
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the table; returns the exit status, 5 if a condition of --fail-if holds."""
    from sightline.cli.printing import print_conditions_met, print_tables
    from sightline.engine.store import Store
    from sightline.evaluation.compare_runs import compare_runs
    from sightline.registry import benchmark_class
    from sightline.report.comparison import check_label, comparison_table, rows_of, tests_table
    from sightline.results.compare import significance_of
    from sightline.results.fail_if_comparison import parse_difference_conditions

    store = Store.open(options.store, create=False)
    try:
        comparison = compare_runs(store, _pairs(options.base, options.other))
    finally:
        store.close()
    known = list(dict.fromkeys(metric.metric for metric in comparison.differences))
    requested = options.metric or benchmark_class(comparison.task.partition(":")[0]).leading_metrics
    for name in requested:
        if name not in known:
            raise UserError(f"--metric {name}: the runs have no such metric", expected=", ".join(known))
    check_label(options.by, [comparison])
    rows = rows_of(comparison, requested, options.by)
    conditions = parse_difference_conditions(options.fail_if, rows, comparison.definitions)
    tests = significance_of(comparison, rows)
    tables = [comparison_table(comparison, rows, tests)]
    if options.tests:
        tables.append(tests_table(comparison, rows, tests))
    print_tables(tables, options.format)
    met = [line for condition in conditions for line in condition.met(rows, tests)]
    print_conditions_met(met)
    return 5 if met else 0


def _runs(word: str) -> list[int]:
    numbers = word.split(",")
    if not all(number.isdecimal() for number in numbers):
        raise argparse.ArgumentTypeError(
            f"{word!r} is not the number of a run (see `sightline report --list`)"
        )
    return list(map(int, numbers))


def _pairs(base: list[int], other: list[int]) -> list[tuple[int, int]]:
    """Pair each compared run with its base run, or with the only one."""
    if len(base) not in (1, len(other)):
        raise UserError(
            f"compare: {len(base)} base runs and {len(other)} compared runs",
            expected="one base run, or the same number of both",
        )
    return list(zip(base if len(base) > 1 else base * len(other), other, strict=True))
