"""`sightline data SUBCOMMAND`: download public data sets; check or describe a data folder."""

from __future__ import annotations

import argparse

from sightline.cli.subcommands import add_subcommands

SUBCOMMANDS = {
    "pull": "download a data set at its pinned revision",
    "check": "verify the records and images of a data folder",
    "describe": "count the labels, lengths and verbs of a data folder",
}

EXAMPLE = """examples:
  sightline data pull codis                              into ./data/codis
  sightline data check iibench --data data/iibench --split test
  sightline data describe iibench --data data/iibench    labels, lengths (Table 1 of its paper)
"""


def register(parser: argparse.ArgumentParser, subcommand: str) -> argparse.ArgumentParser:
    """Add the subcommands; returns the parser of the chosen one."""
    parser.epilog = EXAMPLE
    return add_subcommands(parser, "data", SUBCOMMANDS, subcommand)
