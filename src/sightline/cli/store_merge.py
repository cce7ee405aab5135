"""`sightline store merge`: add the runs and answers of stores to another store."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sightline.cli.options import add_quiet
from sightline.counts import counted

if TYPE_CHECKING:
    from sightline.maintenance.merge import MergedStore
    from sightline.reporting.report_table import ReportTable

SUMMARY = "add the runs and answers of stores to another store, each once"

EXAMPLE = """examples:
  sightline store merge laptop.db --into sightline.db
  sightline store merge node1.db node2.db --into postgresql://user@host/sightline

Runs get new numbers in the target. If several stores have an answer to a request, the first one by time
counts, and all are kept. The sources are not changed. Damaged rows are left out and counted. What was copied
from a source is printed as soon as it is copied. Merging twice is the same as merging once, so you can repeat
a merge that was interrupted.
Merges into one target take turns.

exit status: 0 if everything was copied, 1 if damaged rows of a source were left out
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `store merge`."""
    parser.epilog = EXAMPLE
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="path or URL of a store to read")
    parser.add_argument(
        "--into",
        required=True,
        metavar="TARGET",
        help="path or URL of the store to add to, created if missing",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Merge, and print the new numbers of the runs."""
    from sightline.cli.printing import print_json, print_tables
    from sightline.maintenance.merge import merge

    ended: list[MergedStore] = []
    try:
        for merged in merge(options.sources, options.into, show_progress=not options.quiet):
            ended.append(merged)
            if not options.json:
                print_tables([_table(merged, options.into)], "table")
    finally:
        # What was merged before an error is there.
        if options.json and ended:
            print_json(ended)
    return 1 if any(merged.lost for merged in ended) else 0


def _table(merged: MergedStore, into: str) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable

    columns = (
        Column("text", "run", "run"),
        Column("text", "its number\nin the target", "into"),
        Column("text", "state", "state"),
    )
    rows = tuple((str(one.run), str(one.into), one.state) for one in merged.runs)
    return ReportTable(merged.source, columns, rows, tuple(_notes(merged)))


def _notes(merged: MergedStore) -> Iterator[str]:
    yield (
        f"{counted(merged.attempts, 'answer or failed attempt', 'answers and failed attempts')}, of which "
        + (f"{merged.new_attempts:,} {'is' if merged.new_attempts == 1 else 'are'} new")
    )
    if merged.answered_requests:
        yield (
            f"{counted(merged.answered_requests, 'request')} of the new ones had an answer in the target: "
            "the earlier one counts, and all are kept"
        )
    if merged.different_answers:
        yield f"{counted(merged.different_answers, 'request')} of these had an answer with another text"
    for lost in merged.lost:
        rows = f"{counted(lost.rows, 'row')} of {lost.table} {'is' if lost.rows == 1 else 'are'} damaged"
        yield f"{rows} and not copied; the first: {lost.first}: {lost.problem}"
    if merged.lost:
        yield f"`sightline store verify --store {merged.source}` lists everything that is damaged"
    yield from (one.note for one in merged.runs if one.note)
    yield from merged.notes
