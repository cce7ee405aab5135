"""`sightline runs note`: write a note on a run."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_store
from sightline.cli.run_arguments import add_run, opened_run
from sightline.output import print_line

SUMMARY = "write a note on a run, in the place of its former note"

EXAMPLE = """examples:
  sightline runs note base "server restarted with --max-model-len 8192"
  sightline runs note base ""                                              removes the note
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs note`."""
    parser.epilog = EXAMPLE
    add_run(parser)
    parser.add_argument("text", metavar="TEXT", help="the note; an empty one removes the former note")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    with opened_run(options.run, options.store) as (store, run):
        store.labels.set_note(run, options.text)
    print_line(f"note of run {run}: {options.text}" if options.text else f"run {run} has no note")
    return 0
