"""`sightline annotate import`: add judgements of a filled-in table."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sightline.cli.annotation_arguments import add_project, opened_project, state_of
from sightline.output import print_line, print_note

SUMMARY = "add the judgements of filled-in tables, or of annotated tasks of Label Studio and Potato"

EXAMPLE = """examples:
  sightline annotate export blind --out blind          (blind/items.csv is the table to fill in)
  sightline annotate import blind anna.csv ben.xlsx
  sightline annotate import blind label-studio-export.json

A line needs the item, the annotator's name and the values of the fields. Lines without values are ignored.
Annotators who are not in the project are added. A file that is imported twice adds nothing the second time.
Annotated tasks of Label Studio (its JSON export) and annotated_instances.jsonl of Potato are read, too, if
annotate export wrote their items.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `annotate import`."""
    parser.epilog = EXAMPLE
    add_project(parser)
    parser.add_argument("files", nargs="+", metavar="FILE", help="filled-in table")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Add the judgements, and say how many there were."""
    from sightline.annotation.sheets import import_sheets

    with opened_project(options.project, options.store) as (store, row):
        imported = import_sheets(
            store, row, state_of(store, row), [Path(file) for file in options.files], time.time()
        )
    print_line(
        f"{row.project.name}: {imported.added:,} judgements added, {imported.known:,} were there already"
    )
    if imported.beyond:
        numbers = ", ".join(map(str, imported.beyond[:20])) + (", ..." if len(imported.beyond) > 20 else "")
        print_note(f"more judgements than the project asks for, all of which count: items {numbers}")
    return 0
