"""`sightline store repair`: copy what is readable in a damaged store to a new one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_quiet
from sightline.counts import counted
from sightline.output import print_line

if TYPE_CHECKING:
    from sightline.maintenance.repair import RepairReport
    from sightline.reporting.report_table import ReportTable

SUMMARY = "copy what is readable in a damaged SQLite store to a new one; the old one stays as it is"

EXAMPLE = """examples:
  sightline store repair sightline.db --out repaired.db

Keep FILE-wal beside FILE if there is one: it holds the latest answers. Runs that lost probes or answers count
as not finished; the same `run` command asks only what is missing.

exit status: 0 if nothing is lost, 1 if something is
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `store repair`."""
    parser.epilog = EXAMPLE
    parser.add_argument("file", metavar="FILE", help="the damaged store")
    parser.add_argument("--out", required=True, metavar="NEW", help="the new store")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write the new store; returns 1 if something is lost."""
    from sightline.cli.printing import print_json, print_tables
    from sightline.maintenance.repair import repair

    report = repair(options.file, Path(options.out), show_progress=not options.quiet)
    if options.json:
        print_json(report)
    else:
        print_tables([_table(report)], "table")
        print_line(f"written: {report.out}")
    return 1 if report.lost_something else 0


def _table(report: RepairReport) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable

    columns = (
        Column("text", "table", "table"),
        Column("count", "rows kept", "rows"),
        Column("count", "damaged rows", "damaged_rows"),
        Column("count", "damaged pages", "damaged_pages"),
        Column("count", "rows that need\na lost row", "without_reference"),
    )
    rows = tuple(
        (one.table, one.rows, one.damaged_rows, one.damaged_pages, one.without_reference)
        for one in report.tables
    )
    return ReportTable(f"{report.file} -> {report.out}", columns, rows, tuple(_notes(report)))


def _notes(report: RepairReport) -> list[str]:
    notes = [
        f"run {one.run} is kept, but is not finished any more: {one.problem}"
        for one in report.incomplete_runs
    ]
    if report.lost_runs:
        runs = "run" if len(report.lost_runs) == 1 else "runs"
        notes.append(
            f"no description of {runs} {', '.join(map(str, report.lost_runs))} is readable: probes, verdicts "
            "and labels are dropped, answers are kept; the same `run` command makes a run again"
        )
    if report.missing_pages:
        notes.append(
            f"missing at the end of the file: {counted(report.missing_pages, 'page')}; "
            "what was there is unknown"
        )
    if report.unknown_pages:
        notes.append(
            f"not kept: {counted(report.unknown_pages, 'page')} with rows of no table, or of several: "
            "these rows are lost, or old copies of rows that are kept"
        )
    if report.damaged_log_pages:
        notes.append(f"damaged in the write-ahead log: {counted(report.damaged_log_pages, 'page')}")
    if report.lost_definitions:
        notes.append(
            f"the definitions of the tables {', '.join(report.lost_definitions)} are not readable: those of "
            "this version are used, and the rows that fit them are kept"
        )
    return notes if report.lost_something or notes else ["nothing is lost"]
