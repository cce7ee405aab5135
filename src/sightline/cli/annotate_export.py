"""`sightline annotate export`: write what humans judged."""

from __future__ import annotations

import argparse
from pathlib import Path

from sightline.cli.annotation_arguments import add_project, opened_project, state_of
from sightline.output import print_line

SUMMARY = "write verdicts, answers or data, the log, and tables of what humans judged"

EXAMPLE = """examples:
  sightline annotate export blind --out blind
  sightline annotate export humans --out humans
  sightline score codis humans/anna/default.jsonl --model human:anna --data data/codis
  sightline annotate export blind --out blind --xlsx

DIR receives log.jsonl, with every entry of the log; judgements.csv, a table of the judgements that stand;
items.csv, a form for work without a browser; the items for Label Studio and Potato; and what the task
produces: verdicts.jsonl, a folder per annotator with answers by setting, or data. The files are replaced.
Commands with this store read verdicts without an export: --judge human:blind, judge-report --human blind.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `annotate export`."""
    parser.epilog = EXAMPLE
    add_project(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the files")
    parser.add_argument("--xlsx", action="store_true", help="write judgements.xlsx, too")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write the files, and list them."""
    from sightline.annotation.export import export_project

    with opened_project(options.project, options.store) as (store, row):
        state, annotators = state_of(store, row), store.annotators(row.number)
        log, out = store.entries(row.number), Path(options.out)
        for file, content in export_project(state, annotators, log, out, xlsx=options.xlsx):
            print_line(f"{file}: {content}")
    return 0
