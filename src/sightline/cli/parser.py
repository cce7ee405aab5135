"""The parser of the command line: all commands with their summaries; only the called one is imported."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import sightline
from sightline.errors import UserError, unknown_name

COMMANDS = {
    "quickstart": "evaluate on small synthetic data sets in the formats of CODIS, II-Bench, ConTextual and "
    "MM-R3, without a download",
    "list": "list benchmarks, their settings, options and published rows",
    "build": "build your own data: rephrase, restyle, mask, perturb, scenes, caption, read, equivalence, "
    "curate, synthesize, split",
    "annotate": "let humans rate, answer, compare and write: projects, links, progress, export",
    "adapter": "train a small module that makes a model more consistent (MM-R3, section 5)",
    "data": "download public data sets; check or describe a data folder",
    "run": "send a benchmark to a model, judge its answers, compute the metrics",
    "sweep": "run every combination of models and values of options",
    "score": "judge answers that were collected earlier, compute the metrics",
    "compare": "compare runs group by group, with significance tests",
    "runs": "list, show, name, tag and delete the runs in the store",
    "store": "inspect, verify, merge, clean and export stores",
    "report": "print tables of runs or results folders",
    "show": "print the most informative groups of a run, or those that differ from another run",
    "worker": "answer for a local model by the chat completions protocol, on one machine or a cluster",
    "serve": "show runs, groups, comparisons and data in the browser",
    "judge-report": "measure how well judges and metrics agree with humans",
    "export": "write answers in the formats of other tools",
    "import": "convert predictions of other tools to answers.jsonl",
    "completion": "print the completion script of a shell: bash, zsh or fish",
}


MODULES = {"import": "import_answers"}
"""Module of a command, where it is not the command's name."""

DESCRIPTION = """Evaluate multimodal models on groups of related questions: one image under different
contexts (CODIS), rephrased questions, restyled and masked images (MM-R3), text-rich
images (ConTextual), implied meaning (II-Bench)."""


EPILOG = """examples:
  sightline quickstart
  sightline run codis --model http://localhost:8000/v1#llava --data data/codis
  sightline COMMAND --help

exit status:
  0    done
  1    done, but some probes have no answer
  2    the command or its input is wrong; nothing was sent
  3    the environment failed, such as a full disk
  4    a budget is reached
  5    a condition of --fail-if holds
  130  interrupted
"""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UserError and accepts no abbreviated options."""

    def error(self, message: str) -> NoReturn:
        """Raise UserError for a wrong call (exit status 2)."""
        raise UserError(f"{message.replace('argument ', '')}; see `{self.prog} --help`")


def build_parser(words: Sequence[str]) -> tuple[Parser, argparse.ArgumentParser]:
    command, subcommand = [*words, "", ""][:2]
    parser = Parser(
        prog="sightline",
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sightline {sightline.__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    innermost: argparse.ArgumentParser = parser
    for name, summary in COMMANDS.items():
        child = add_command(commands, name, summary)
        if name == command:
            module = importlib.import_module(f"sightline.cli.{MODULES.get(name, name.replace('-', '_'))}")
            if hasattr(module, "SUBCOMMANDS"):
                innermost = module.register(child, subcommand)
            else:
                module.register(child)
                innermost = child
    return parser, innermost


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """List the options of a parser.

    A formatter receives the actions of a parser; argparse has no other public way to list them.
    """
    names: list[str] = []

    class OptionNames(argparse.HelpFormatter):
        def add_usage(self, usage: Any, actions: Iterable[argparse.Action], *_: Any, **__: Any) -> None:
            names.extend(name for action in actions for name in action.option_strings)

    formatter = parser.formatter_class
    parser.formatter_class = OptionNames
    parser.format_usage()
    parser.formatter_class = formatter
    return names


# -- Commands with subcommands: all with their summaries, the executed one with its options

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
    registers: Mapping[str, Callable[[argparse.ArgumentParser], None]],
) -> argparse.ArgumentParser:
    """Add the subcommands; the chosen one ('' for none) gets its options by its register."""
    if chosen and not chosen.startswith("-") and chosen not in summaries:
        raise unknown_name(f"subcommand of {command}", chosen, summaries)
    parser.set_defaults(execute=lambda _: _print_help(parser))
    below = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    innermost = parser
    for name, summary in summaries.items():
        child = add_command(below, name, summary)
        if name == chosen:
            innermost = child
            registers[name](child)
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
