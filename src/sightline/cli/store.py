"""`sightline store SUBCOMMAND`: what a store holds; check, merge, clean and export it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_quiet, add_store
from sightline.cli.printing import plain_table
from sightline.text import counted, print_line, print_note

if TYPE_CHECKING:
    from sightline.maintenance.merge import MergedStore
    from sightline.maintenance.store_maintenance import Inventory

EXAMPLE = """examples:
  sightline store info
  sightline store verify --store sightline.db
  sightline store merge laptop.db node1.db node2.db --into sightline.db
  sightline store gc --dry-run
  sightline store export runs --out runs.jsonl
"""

MOST_PRINTED = 1000
"""Faults that are printed; a badly damaged store has one for each row."""


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """examples:
  sightline store info
  sightline store info --store postgresql://user@host/sightline --json
"""
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store(parser)
    parser.set_defaults(execute=_info)


def _info(options: argparse.Namespace) -> int:
    from sightline.cli.printing import print_json, print_tables
    from sightline.maintenance.store_maintenance import take_inventory

    found = take_inventory(options.store)
    if options.json:
        print_json(found)
        return 0
    rows = ((one.table, one.rows, one.bytes, one.content) for one in found.tables)
    tables = [plain_table(found.store, ("table", "#rows", "#bytes", "content"), rows, _sizes(found))]
    if found.runs:
        columns = ("run", "task", "model", "started", "state", "#bytes")
        of_runs = (
            (str(one.run), one.task, one.model, one.started, one.state, one.bytes) for one in found.runs
        )
        note = "bytes: what only this run needs; answers are shared by all runs"
        tables.append(plain_table("runs", columns, of_runs, [note]))
    print_tables(tables, "table")
    return 0


def _sizes(found: Inventory) -> Iterator[str]:
    sizes = found.sizes
    beside = f", {sizes.log_bytes:,} in its write-ahead log" if sizes.log_bytes else ""
    yield f"{sizes.database}, schema version {found.schema_version}, {sizes.bytes:,} bytes{beside}"
    if sizes.free_bytes is not None:
        yield f"{sizes.free_bytes:,} bytes are free"
    yield f"answers from {found.first_answer} to {found.last_answer}" if found.first_answer else "no answers"
    if found.models:
        yield f"models: {', '.join(found.models)}"


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """examples:
  sightline store verify
  sightline store verify --store backup.db --json

exit status: 0 if nothing is wrong, 1 if something is
"""
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    add_store(parser)
    parser.set_defaults(execute=_verify)


def _verify(options: argparse.Namespace) -> int:
    from sightline.cli.printing import print_json, print_tables
    from sightline.maintenance.verify import verify
    from sightline.store.connect import display, sqlite_path

    faults = verify(options.store, show_progress=not options.quiet)
    printed = list(islice(faults, MOST_PRINTED))
    remedies = Counter(fault.remedy for fault in printed)
    remedies.update(fault.remedy for fault in faults)
    total, name = remedies.total(), display(options.store)
    if sqlite_path(options.store) is None and not options.quiet:
        print_note("the rows are checked, not the files of the server, which checks them itself")
    if options.json:
        print_json({"faults": total, "listed": printed})
    elif printed:
        rows = (
            (one.table, one.row, "" if one.run is None else str(one.run), one.problem)
            for one in sorted(printed, key=lambda one: one.table)
        )
        notes = [f"and {total - len(printed):,} more"] if total > len(printed) else []
        notes += (f"remedy of {counted(count, 'fault')}: {remedy}" for remedy, count in remedies.items())
        title = f"{counted(total, 'fault')} in {name}"
        print_tables([plain_table(title, ("table", "row", "run", "problem"), rows, notes)], "table")
    else:
        print_line(f"{name}: nothing is wrong")
    return 1 if total else 0


def _add_merge(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """examples:
  sightline store merge laptop.db --into sightline.db
  sightline store merge node1.db node2.db --into postgresql://user@host/sightline

Runs get new numbers in the target. If several stores have an answer to a request, the first one by time
counts, and all are kept. The sources are not changed. Damaged rows are left out and counted. Each source is
copied in one transaction, and printed when it is copied. Merging twice is the same as merging once, so you
can repeat a merge that was interrupted.
Other commands that write to the target wait meanwhile, at most a minute.

exit status: 0 if everything was copied, 1 if damaged rows of a source were left out
"""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="path or URL of a store to read")
    parser.add_argument(
        "--into",
        required=True,
        metavar="TARGET",
        help="path or URL of the store to add to, created if missing",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=_merge)


def _merge(options: argparse.Namespace) -> int:
    from sightline.cli.printing import print_json, print_tables
    from sightline.maintenance.merge import merge

    ended: list[MergedStore] = []
    try:
        for merged in merge(options.sources, options.into, show_progress=not options.quiet):
            ended.append(merged)
            if not options.json:
                rows = ((str(one.run), str(one.into), one.state) for one in merged.runs)
                columns = ("run", "its number\nin the target", "state")
                print_tables([plain_table(merged.source, columns, rows, _copied(merged))], "table")
    finally:
        # What was merged before an error is there.
        if options.json and ended:
            print_json(ended)
    return 1 if any(merged.lost for merged in ended) else 0


def _copied(merged: MergedStore) -> Iterator[str]:
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


def _add_gc(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """examples:
  sightline store gc --dry-run
  sightline store gc --caches
  sightline store gc --unreferenced-answers --dry-run

Without options, leftovers go: rows of runs that do not exist, claims of processes that ended.
Answers and caches stay.

--caches drops what Sightline computes again when it is needed: metadata of images, text embeddings and values
of text metrics, OCR results, the index of outcomes and its thumbnails.
--unreferenced-answers drops answers that no run refers to, such as the replies to `build` commands, which
would be asked again. Replies of the judges of runs always stay.
"""
    parser.add_argument("--dry-run", action="store_true", help="print what would go, and change nothing")
    parser.add_argument(
        "--caches",
        action="store_true",
        help="drop image metadata, embeddings, values of text metrics, OCR results, indexes",
    )
    parser.add_argument(
        "--unfinished", action="store_true", help="drop runs that did not finish; answers stay"
    )
    parser.add_argument(
        "--unreferenced-answers", action="store_true", help="drop answers that no run refers to"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store(parser)
    parser.set_defaults(execute=_gc)


def _gc(options: argparse.Namespace) -> int:
    from sightline.cli.printing import print_json, print_tables
    from sightline.maintenance.store_maintenance import CleaningOptions, clean

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
    notes = [
        f"{found.bytes_before:,} bytes; nothing was changed"
        if found.bytes_after is None
        else f"{found.bytes_before:,} bytes before, {found.bytes_after:,} now"
    ]
    if found.cache_bytes:
        notes.append(f"caches hold {found.cache_bytes:,} bytes, which --caches drops")
    if not found.dropped:
        for line in ("nothing to drop", *notes):
            print_line(line)
        return 0
    title = "would be dropped" if options.dry_run else "dropped"
    rows = ((one.table, one.rows, one.reason) for one in found.dropped)
    print_tables([plain_table(title, ("table", "#rows", "reason"), rows, notes)], "table")
    return 0


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """examples:
  sightline store export runs --out runs.jsonl
  sightline store export answers --run 3 --out answers-of-run-3.jsonl
  sightline store export probes --run base --out probes-of-base.jsonl

kinds of records:
  runs         the description of each run
  probes       what each run asked, with the key of the answer
  answers      every attempt with its request: {"key", "created", "result", "request"}
  verdicts     verdicts of humans
  endpoints    checks of endpoints
  annotations  every entry of the logs of annotation projects
  batches      batches at providers that are not fetched yet, with the keys of their requests

`sightline run --out` writes the judged answers of a run.
"""
    parser.add_argument(
        "kind", metavar="KIND", help="runs, probes, answers, verdicts, endpoints, annotations or batches"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    parser.add_argument(
        "--run", metavar="RUN", help="only the records of this run, by number or name (default: all)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing FILE")
    add_quiet(parser)
    add_store(parser)
    parser.set_defaults(execute=_export)


def _export(options: argparse.Namespace) -> int:
    from sightline.formats.files import refuse_overwriting
    from sightline.maintenance.store_maintenance import export_records
    from sightline.store.connect import sqlite_path

    out, store = Path(options.out), sqlite_path(options.store)
    refuse_overwriting(out, options.force, read=[store] if store else [])
    count = export_records(options.store, options.kind, out, options.run, show_progress=not options.quiet)
    print_line(f"written: {out}, {counted(count, 'record')}")
    return 0


SUBCOMMANDS = {
    "info": (
        _add_info,
        "show what a store holds: sizes by table and by run, models, dates; nothing is changed",
    ),
    "verify": (_add_verify, "read everything in a store and report what is wrong; nothing is changed"),
    "merge": (_add_merge, "add the runs and answers of stores to another store, each once"),
    "gc": (_add_gc, "drop what no run needs, and give the room back"),
    "export": (_add_export, "write the records of a store as JSON Lines, for other tools"),
}
