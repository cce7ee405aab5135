"""`sightline annotate close`: close a project."""

from __future__ import annotations

import argparse

from sightline.cli.annotation_arguments import add_project, opened_project
from sightline.output import print_line

SUMMARY = "close a project, so that nothing is added any more; its judgements stay"

EXAMPLE = """examples:
  sightline annotate close blind
  sightline annotate close blind --reopen
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `annotate close`."""
    parser.epilog = EXAMPLE
    add_project(parser)
    parser.add_argument("--reopen", action="store_true", help="open it again")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Close or open the project."""
    with opened_project(options.project, options.store) as (store, row):
        store.close(row.number, closed=not options.reopen)
    print_line(f"{row.project.name} is {'open' if options.reopen else 'closed'}")
    return 0
