"""Commands with subcommands; only the module of the executed subcommand is imported."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping
from typing import TypeVar

from sightline.errors import unknown_name

AnyParser = TypeVar("AnyParser", bound=argparse.ArgumentParser)


def add_command(commands: argparse._SubParsersAction[AnyParser], name: str, summary: str) -> AnyParser:
    """Add a command or a subcommand, still without options."""
    return commands.add_parser(
        name,
        help=summary,
        description=sentence(summary),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_subcommands(
    parser: argparse.ArgumentParser,
    command: str,
    summaries: Mapping[str, str],
    chosen: str,
    registers: Mapping[str, Callable[[argparse.ArgumentParser], None]] | None = None,
) -> argparse.ArgumentParser:
    """Add the subcommands of a command, with the options of the chosen one.

    Args:
        chosen: The word after the command; '' if there is none.
        registers: What adds the options of each; None if each is a module `cli.COMMAND_SUBCOMMAND`.
    """
    if chosen and not chosen.startswith("-") and chosen not in summaries:
        raise unknown_name(f"subcommand of {command}", chosen, summaries)
    parser.set_defaults(execute=lambda _: _print_help(parser))
    below = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    innermost = parser
    for name, summary in summaries.items():
        child = add_command(below, name, summary)
        if name == chosen:
            innermost = child
            if registers is not None:
                registers[name](child)
            else:
                module = importlib.import_module(f"sightline.cli.{command}_{name}")
                child.description = sentence(module.SUMMARY)
                module.register(child)
    return innermost


def sentence(summary: str) -> str:
    """Write a summary as a sentence.

    >>> sentence("list benchmarks")
    'List benchmarks.'
    """
    return f"{summary[:1].upper()}{summary[1:]}."


def _print_help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0
