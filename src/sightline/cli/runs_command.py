"""`sightline runs SUBCOMMAND`: the runs in a store; only the executed subcommand is imported."""

from __future__ import annotations

import argparse

from sightline.cli.subcommands import add_subcommands

SUBCOMMANDS = {
    "list": "list the runs",
    "show": "print everything that the store knows about a run",
    "rename": "give a run a name, another name, or none",
    "tag": "add tags to a run, or remove them",
    "note": "write a note on a run",
    "delete": "delete runs; the answers stay",
}

EXAMPLE = """examples:
  sightline run codis --model openai/gpt-4o --data data/codis --name base --tag july
  sightline runs list --tag july
  sightline compare base adapter
  sightline runs SUBCOMMAND --help

A run has a number, which is never used again, and can have a name, tags and a note. Commands that take a run
accept its number or its name.
"""


def register(parser: argparse.ArgumentParser, subcommand: str) -> argparse.ArgumentParser:
    """Add the subcommands; returns the parser of the chosen one."""
    parser.epilog = EXAMPLE
    return add_subcommands(parser, "runs", SUBCOMMANDS, subcommand)
