"""`sightline runs show`: print everything that the store knows about a run."""

from __future__ import annotations

import argparse
from typing import Any

from sightline.cli.options import add_store
from sightline.cli.printing import print_json
from sightline.cli.run_arguments import add_run, opened_run
from sightline.output import print_line

SUMMARY = "print the name, tags, note, state, data, model and all options of a run"

EXAMPLE = """examples:
  sightline runs show 3
  sightline runs show base --json
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs show`."""
    parser.epilog = EXAMPLE
    add_run(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the run."""
    import msgspec

    from sightline.results.run_details import run_details

    with opened_run(options.run, options.store) as (store, number):
        run = run_details(store, number)
    if options.json:
        print_json(run)
        return 0
    for name, value in msgspec.to_builtins(run).items():
        if value not in (None, "", [], {}):
            print_line(f"{name.replace('_', ' '):<16}{_text(value)}")
    return 0


def _text(value: Any) -> str:
    from sightline.report.varied_options import options_text

    if isinstance(value, dict):
        return options_text(value)
    return "; ".join(value) if isinstance(value, list | tuple) else str(value)
