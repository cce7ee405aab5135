"""`sightline runs show`: print everything that the store knows about a run."""

from __future__ import annotations

import argparse
from typing import Any

from sightline.cli.options import add_store
from sightline.cli.printing import print_json
from sightline.cli.run_arguments import add_run, opened_run
from sightline.output import print_line

SUMMARY = "print the name, tags, note, state, data, model, options, counts, tokens and cost of a run"

EXAMPLE = """examples:
  sightline runs show 3
  sightline runs show base --json
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs show`."""
    parser.epilog = EXAMPLE
    add_run(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--config", metavar="FILE", help="sightline.toml with the prices of models")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the run."""
    import msgspec

    from sightline.config import load_config
    from sightline.results.run_details import run_details

    with opened_run(options.run, options.store) as (store, number):
        run = run_details(store, number, load_config(options.config))
    if options.json:
        print_json(run)
        return 0
    shown = msgspec.to_builtins(run)
    answers = shown.pop("answers")
    for name, value in {**shown, **answers}.items():
        if value not in (None, "", [], {}):
            print_line(f"{name.replace('_', ' '):<19}{_text(value)}")
        elif name == "note":
            print_line(f"{name:<19}none")
    return 0


def _text(value: Any) -> str:
    from sightline.reporting.option_texts import options_text

    if isinstance(value, dict):
        return options_text(value)
    return "; ".join(value) if isinstance(value, list | tuple) else str(value)
