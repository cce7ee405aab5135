"""`sightline store gc`: drop what no run needs, and give the room back."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_store
from sightline.output import print_line

SUMMARY = "drop what no run needs, and give the room back"

EXAMPLE = """examples:
  sightline store gc --dry-run
  sightline store gc --caches
  sightline store gc --unreferenced-answers --dry-run

Without options, leftovers go: definitions and texts that nothing refers to, claims of processes that ended,
copies of runs that a merge did not finish. Answers and caches stay.

--caches drops what Sightline computes again when it is needed: metadata of images, text embeddings and values
of text metrics, OCR results, results that rules judged, plans of runs, the index of outcomes and its
thumbnails.
--unreferenced-answers drops answers that no run refers to, such as the replies to `build` commands, which
would be asked again. Replies of the judges of runs always stay.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `store gc`."""
    parser.epilog = EXAMPLE
    parser.add_argument("--dry-run", action="store_true", help="print what would go, and change nothing")
    parser.add_argument(
        "--caches",
        action="store_true",
        help="drop image metadata, embeddings, values of text metrics, OCR results, judged results, indexes",
    )
    parser.add_argument(
        "--unfinished", action="store_true", help="drop runs that did not finish; answers stay"
    )
    parser.add_argument(
        "--unreferenced-answers", action="store_true", help="drop answers that no run refers to"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Clean the store, and print what went."""
    from sightline.cli.printing import print_json, print_tables
    from sightline.maintenance.clean import CleaningOptions, clean
    from sightline.reporting.report_table import Column, ReportTable

    wanted = CleaningOptions(
        caches=options.caches,
        unfinished_runs=options.unfinished,
        unreferenced_answers=options.unreferenced_answers,
        dry_run=options.dry_run,
    )
    found = clean(options.store, wanted)
    if options.json:
        print_json(found)
        return 0
    columns = (
        Column("text", "table", "table"),
        Column("count", "rows", "rows"),
        Column("text", "reason", "reason"),
    )
    rows = tuple((one.table, one.rows, one.reason) for one in found.dropped)
    size = (
        f"{found.bytes_before:,} bytes; nothing was changed"
        if found.bytes_after is None
        else f"{found.bytes_before:,} bytes before, {found.bytes_after:,} now"
    )
    notes = [size]
    if found.cache_bytes:
        notes.append(f"caches hold {found.cache_bytes:,} bytes, which --caches drops")
    if not rows:
        for line in ("nothing to drop", *notes):
            print_line(line)
        return 0
    title = "would be dropped" if options.dry_run else "dropped"
    print_tables([ReportTable(title, columns, rows, tuple(notes))], "table")
    return 0
