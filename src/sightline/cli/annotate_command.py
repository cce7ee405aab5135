"""`sightline annotate SUBCOMMAND`: annotation projects; only the executed subcommand is imported."""

from __future__ import annotations

import argparse

from sightline.cli.subcommands import add_subcommands

SUBCOMMANDS = {
    "tasks": "list the tasks that humans can do",
    "new": "start a project: a task, its items, their sample and order",
    "invite": "make personal links for annotators, or end one",
    "status": "print progress, agreement and items without a decision",
    "export": "write verdicts, answers, data or tables of what humans judged",
    "import": "add judgements of a filled-in table",
    "close": "close a project, so that nothing is added any more",
}

EXAMPLE = """examples:
  sightline annotate new rate results/a results/b --name blind --data data/contextual --items 40
  sightline annotate invite blind Anna Ben Chloe
  sightline serve
  sightline annotate status blind
  sightline annotate export blind --out blind
  sightline annotate SUBCOMMAND --help

Annotators open their links in a browser; `sightline serve` runs the pages. docs/annotation.md has the whole
way.
"""


def register(parser: argparse.ArgumentParser, subcommand: str) -> argparse.ArgumentParser:
    """Add the subcommands; returns the parser of the chosen one."""
    parser.epilog = EXAMPLE
    return add_subcommands(parser, "annotate", SUBCOMMANDS, subcommand)
