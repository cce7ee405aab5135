"""Commands that have kinds below them; only the one that is run is imported."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping

from sightline.errors import unknown_name


def add_kinds(
    parser: argparse.ArgumentParser, command: str, kinds: Mapping[str, str], chosen: str, what: str
) -> None:
    """Add the kinds of a command, with the options of the chosen one, module `cli.COMMAND_KIND`.

    Raises UserError for a kind that does not exist, of which `what` says what it is a kind of.
    """
    if chosen and not chosen.startswith("-") and chosen not in kinds:
        raise unknown_name(what, chosen, kinds)
    parser.set_defaults(execute=lambda _: _print_help(parser))
    below = parser.add_subparsers(title="kinds", metavar="KIND")
    for name, summary in kinds.items():
        child = below.add_parser(
            name,
            help=summary,
            description=summary,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == chosen:
            module = importlib.import_module(f"sightline.cli.{command}_{name}")
            child.description = module.SUMMARY
            module.register(child)


def _print_help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0
