"""`sightline store info`: what a store holds, by table and by run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sightline.cli.options import add_store
from sightline.output import print_note

if TYPE_CHECKING:
    from sightline.maintenance.inventory import Inventory
    from sightline.reporting.report_table import ReportTable

SUMMARY = "show what a store holds: sizes by table and by run, models, dates; nothing is changed"

EXAMPLE = """examples:
  sightline store info
  sightline store info --store postgresql://user@host/sightline --json
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `store info`."""
    parser.epilog = EXAMPLE
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the inventory."""
    from sightline.cli.printing import print_json, print_tables
    from sightline.maintenance.inventory import take_inventory

    found = take_inventory(options.store)
    if options.json:
        print_json(found)
        return 0
    print_tables([_tables(found), _runs(found)] if found.runs else [_tables(found)], "table")
    if found.needs_migration:
        print_note("an older Sightline wrote this store: the next command that writes migrates it")
    return 0


def _tables(found: Inventory) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable

    columns = (
        Column("text", "table", "table"),
        Column("count", "rows", "rows"),
        Column("count", "bytes", "bytes"),
        Column("text", "content", "content"),
    )
    rows = tuple((one.table, one.rows, one.bytes, one.content) for one in found.tables)
    return ReportTable(found.store, columns, rows, tuple(_notes(found)))


def _notes(found: Inventory) -> list[str]:
    sizes = found.sizes
    beside = f", {sizes.log_bytes:,} in its write-ahead log" if sizes.log_bytes else ""
    free = f"{sizes.free_bytes:,} bytes are free" if sizes.free_bytes is not None else ""
    dates = (
        f"answers from {found.first_answer} to {found.last_answer}" if found.first_answer else "no answers"
    )
    models = f"models: {', '.join(found.models)}" if found.models else ""
    lines = (
        f"{sizes.database}, schema version {found.schema_version}, {sizes.bytes:,} bytes{beside}",
        free,
        dates,
        models,
    )
    return [line for line in lines if line]


def _runs(found: Inventory) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable

    columns = (
        Column("text", "run", "run"),
        Column("text", "task", "task"),
        Column("text", "model", "model"),
        Column("text", "started", "started"),
        Column("text", "state", "state"),
        Column("count", "bytes", "bytes"),
    )
    rows = tuple((str(one.run), one.task, one.model, one.started, one.state, one.bytes) for one in found.runs)
    note = "bytes: what only this run needs; answers are shared by all runs"
    return ReportTable("runs", columns, rows, (note,))
