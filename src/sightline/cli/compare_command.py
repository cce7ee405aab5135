"""`sightline compare`: how far one run is from another, group by group, with intervals."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_printing, add_store
from sightline.errors import UserError

EXAMPLE = """examples:
  sightline compare 3 4                        run 4 less run 3, of ./sightline.db
  sightline compare 3 4 --by style --metric con --metric acc
  sightline compare 3 4,5,6                    runs 4, 5 and 6 together (three seeds), each less run 3
  sightline compare 4,5,6 7,8,9                run 7 less 4, 8 less 5 and 9 less 6, together
  sightline compare 3 4 --tests                every test, and which difference could have been found
  sightline compare 3 4 --fail-if worse        exit status 5 where run 4 is significantly worse
  sightline report --list                      the numbers of the runs
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("base", type=_runs, metavar="RUN[,RUN...]", help="number of the run that is held against")
    add("other", type=_runs, metavar="RUN[,RUN...]", help="number of the run whose difference is told")
    add(
        "--metric",
        action="append",
        metavar="NAME",
        help="only this; may repeat (default: the leading ones)",
    )
    add("--tests", action="store_true", help="a second table: every test, corrected, and what it could find")
    loss = (
        "exit with status 5 where this is a significant difference (Holm, over the rows of the table), or "
        "has no number: worse (any metric of the table), 'acc_p: worse', 'miss: higher'; may repeat"
    )
    add("--fail-if", action="append", default=[], metavar="CONDITION", help=loss)
    add_printing(parser)
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the table; returns the exit status, 5 where a condition of --fail-if holds."""
    from sightline.cli.printing import print_failed, print_tables
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
    wanted = options.metric or benchmark_class(comparison.task.partition(":")[0]).leading_metrics
    for name in wanted:
        if name not in known:
            raise UserError(f"--metric {name}: these runs have no such metric", expected=", ".join(known))
    check_label(options.by, [comparison])
    rows = rows_of(comparison, wanted, options.by)
    conditions = parse_difference_conditions(options.fail_if, rows, comparison.definitions)
    found = significance_of(comparison, rows)
    tables = [comparison_table(comparison, rows, found)]
    if options.tests:
        tables.append(tests_table(comparison, rows, found))
    print_tables(tables, options.format)
    lost = [one for condition in conditions for one in condition.failures(rows, found)]
    print_failed(lost)
    return 5 if lost else 0


def _runs(word: str) -> list[int]:
    numbers = word.split(",")
    if not all(number.isdecimal() for number in numbers):
        raise argparse.ArgumentTypeError(f"{word!r} is no number of a run (`sightline report --list`)")
    return list(map(int, numbers))


def _pairs(base: list[int], other: list[int]) -> list[tuple[int, int]]:
    """Each of the second runs with the first of its own, or with the one for all."""
    if len(base) not in (1, len(other)):
        raise UserError(
            f"compare: {len(base)} runs against {len(other)}",
            expected="one for all, or as many on both sides",
        )
    return list(zip(base if len(base) > 1 else base * len(other), other, strict=True))
