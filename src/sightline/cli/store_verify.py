"""`sightline store verify`: read everything in a store and report what is wrong."""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import islice

from sightline.cli.options import add_quiet, add_store
from sightline.counts import counted
from sightline.output import print_line

SUMMARY = "read everything in a store and report what is wrong; nothing is changed"

EXAMPLE = """examples:
  sightline store verify
  sightline store verify --store backup.db --json

exit status: 0 if nothing is wrong, 1 if something is
"""

MOST_PRINTED = 1000
"""Faults that are printed; a badly damaged store has one for each row."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `store verify`."""
    parser.epilog = EXAMPLE
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the faults; returns 1 if there is one."""
    from sightline.cli.printing import print_json, print_tables
    from sightline.engine.connect import display
    from sightline.maintenance.verify import verify
    from sightline.reporting.report_table import Column, ReportTable

    faults = verify(options.store, show_progress=not options.quiet)
    printed = list(islice(faults, MOST_PRINTED))
    remedies = Counter(fault.remedy for fault in printed)
    remedies.update(fault.remedy for fault in faults)
    total = remedies.total()
    if options.json:
        print_json(
            {
                "faults": total,
                "listed": [
                    {
                        "table": one.table,
                        "row": one.row,
                        "run": one.run,
                        "problem": one.problem,
                        "remedy": one.remedy,
                    }
                    for one in printed
                ],
            }
        )
    elif printed:
        columns = (
            Column("text", "table", "table"),
            Column("text", "row", "row"),
            Column("text", "run", "run"),
            Column("text", "problem", "problem"),
        )
        rows = tuple(
            (one.table, one.row, "" if one.run is None else str(one.run), one.problem)
            for one in sorted(printed, key=lambda one: one.table)
        )
        notes = [f"remedy of {counted(count, 'fault')}: {remedy}" for remedy, count in remedies.items()]
        if total > len(printed):
            notes.insert(0, f"and {total - len(printed):,} more")
        title = f"{counted(total, 'fault')} in {display(options.store)}"
        print_tables([ReportTable(title, columns, rows, tuple(notes))], "table")
    else:
        print_line(f"{display(options.store)}: nothing is wrong")
    return 1 if total else 0
