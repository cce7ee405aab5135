"""`sightline completion`: print the completion script of a shell, and answer the shell that runs it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import argcomplete
from argcomplete.completers import BaseCompleter, FilesCompleter
from argcomplete.shell_integration import shellcode

from sightline.errors import EnvironmentFailedError, UserError
from sightline.text import print_document

SHELLS = ("bash", "zsh", "fish")

EXAMPLE = """examples:
  eval "$(sightline completion bash)"                                      in ~/.bashrc
  eval "$(sightline completion zsh)"                                       in ~/.zshrc, after compinit
  sightline completion fish > ~/.config/fish/completions/sightline.fish    once

Then the Tab key completes commands, options, their choices, files, benchmarks and settings.
"""


class Values(BaseCompleter):
    """The values of an argument without choices: benchmarks and settings of TASK, runs and files of RUN,
    otherwise files."""

    def __call__(
        self, *, prefix: str, action: argparse.Action, parsed_args: argparse.Namespace, **context: Any
    ) -> Iterable[str]:
        """List the values that begin with a prefix, and possibly others."""
        if action.dest in ("run", "runs", "base", "other") and "store" in parsed_args:
            return [*_names_of_runs(prefix, parsed_args.store), *FilesCompleter()(prefix)]
        if action.dest not in ("task", "benchmark"):
            files: Iterable[str] = FilesCompleter()(prefix)
            return files
        from sightline.benchmarks.registry import benchmark, benchmark_names

        name, colon, _ = prefix.partition(":")
        if colon and action.dest == "task" and name in benchmark_names():
            return [f"{name}:{setting}" for setting in benchmark(name).settings]
        return benchmark_names()


def _names_of_runs(prefix: str, store: str) -> list[str]:
    """The names of the runs in a store, after the other runs of a list with commas; none without a store."""
    from sightline.store.runs import names_of_runs

    others, comma, _ = prefix.rpartition(",")
    try:
        return [f"{others}{comma}{name}" for name in names_of_runs(store)]
    except (UserError, EnvironmentFailedError):
        return []


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("shell", choices=SHELLS, help="the shell: bash, zsh or fish")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    from sightline.cli.printing import output_errors

    with output_errors():
        print_document(shellcode(["sightline"], shell=options.shell) + "\n")
    return 0


def complete(parser_for: Callable[[Sequence[str]], argparse.ArgumentParser]) -> None:
    """Write the completions of the command line in COMP_LINE for the script of `execute`, and exit."""
    words = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])].split()[1:]
    try:
        parser = parser_for(words)
    except UserError:
        # The second word is a part of a subcommand.
        parser = parser_for(words[:1])
    argcomplete.autocomplete(parser, always_complete_options="long", default_completer=Values())
