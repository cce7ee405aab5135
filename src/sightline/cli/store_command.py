"""`sightline store SUBCOMMAND`: what a store holds; check, repair, merge, clean and export it."""

from __future__ import annotations

import argparse

from sightline.cli.subcommands import add_subcommands

SUBCOMMANDS = {
    "info": "show what a store holds: sizes by table and by run, models, dates",
    "verify": "read everything in a store and report what is wrong",
    "repair": "copy what is readable in a damaged store to a new one",
    "merge": "add the runs and answers of stores to another store",
    "gc": "drop what no run needs, and give the room back",
    "export": "write the records of a store as JSON Lines",
}

EXAMPLE = """examples:
  sightline store info
  sightline store verify --store sightline.db
  sightline store repair damaged.db --out repaired.db
  sightline store merge laptop.db node1.db node2.db --into sightline.db
  sightline store gc --dry-run
  sightline store export runs --out runs.jsonl
"""


def register(parser: argparse.ArgumentParser, subcommand: str) -> argparse.ArgumentParser:
    """Add the subcommands; returns the parser of the chosen one."""
    parser.epilog = EXAMPLE
    return add_subcommands(parser, "store", SUBCOMMANDS, subcommand)
