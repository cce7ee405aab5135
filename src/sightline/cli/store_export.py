"""`sightline store export`: write the records of a store as JSON Lines."""

from __future__ import annotations

import argparse
from pathlib import Path

from sightline.cli.options import add_quiet, add_store
from sightline.counts import counted
from sightline.output import print_line

SUMMARY = "write the records of a store as JSON Lines, for other tools"

EXAMPLE = """examples:
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


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `store export`."""
    parser.epilog = EXAMPLE
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
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write the file."""
    from sightline.engine.connect import sqlite_path
    from sightline.formats.files import refuse_overwriting
    from sightline.maintenance.records import export_records

    out, store = Path(options.out), sqlite_path(options.store)
    refuse_overwriting(out, options.force, read=[store] if store else [])
    count = export_records(options.store, options.kind, out, options.run, show_progress=not options.quiet)
    print_line(f"written: {out}, {counted(count, 'record')}")
    return 0
