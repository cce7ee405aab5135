"""The command line: its parser, which imports only the called command, and its entry and exit statuses."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn

import sightline
from sightline.cli.options import Parser
from sightline.cli.printing import flush_output, open_streams
from sightline.errors import EnvironmentFailedError, UserError, did_you_mean, unknown_name
from sightline.text import discard, print_note

GROUPS = {
    "start": {
        "quickstart": "evaluate on small synthetic data sets in the formats of CODIS, II-Bench, ConTextual "
        "and MM-R3, without a download",
        "check": "ask a model some 30 questions with known answers: does it see images, and keep them apart",
        "list": "list benchmarks, their settings, options and published rows",
        "docs": "print a page of the documentation",
    },
    "run": {
        "run": "send a benchmark to a model, judge its answers, compute the metrics",
        "score": "judge answers that were collected earlier, compute the metrics",
        "sweep": "run every combination of models and values of options",
        "adapter": "train a small module that makes a model more consistent (MM-R3, section 5)",
    },
    "look": {
        "report": "print tables of runs or results folders",
        "compare": "compare runs group by group, with significance tests",
        "show": "print the most informative groups of a run, or those that differ from another run",
        "serve": "show runs, groups, comparisons and data in the browser",
        "runs": "list, show, name, tag and delete the runs in the store",
    },
    "judge": {
        "judge-report": "measure how well judges and metrics agree with humans",
        "annotate": "let humans rate, answer, compare and write: projects, links, plans, progress, export",
    },
    "data": {
        "data": "download public data sets; check or describe data; make groups of a table",
        "build": "build your own data: rephrase, reword, restyle, mask, perturb, caption, read, equivalence, "
        "curate, synthesize, split",
    },
    "more": {
        "export": "write answers or runs in the formats of other tools, or as tables",
        "import": "convert predictions of other tools to answers.jsonl",
        "store": "inspect, verify, merge, clean and export stores",
        "worker": "answer for a local model by the chat completions protocol, on one machine or a cluster",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}

WORDS_OF_OTHERS = {
    "eval": "run", "evaluate": "run", "eval-set": "sweep", "view": "serve", "viewer": "serve", "ui": "serve",
    "log": "runs", "logs": "runs", "tasks": "list", "ls": "list", "judge": "judge-report",
    "download": "data pull", "pull": "data pull", "train": "adapter train", "diff": "compare",
}  # fmt: skip
"""What lm-eval, lmms-eval, inspect_ai and users call a command, and its name here."""

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
  1    done, but some probes have no answer, images are missing or mixed up, or a rule is not decided
  2    the command or its input is wrong; answers received before are kept
  3    the environment failed, such as a full disk
  4    a budget is reached
  5    a condition of --fail-if holds, or a rule of --policy is not met
  130  interrupted
"""


def build_parser(words: Sequence[str]) -> tuple[Parser, argparse.ArgumentParser]:
    command, subcommand = [*words, "", ""][:2]
    parser = Parser(
        prog="sightline",
        usage="sightline [-h] [--version] [--debug] COMMAND ...",
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sightline {sightline.__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    # Without a help text of its own, a command is left out of the plain list; only the first help has groups.
    grouped = None if command in COMMANDS else _grouped()
    commands = parser.add_subparsers(
        title="commands", description=grouped, prog="sightline", metavar="COMMAND", help=argparse.SUPPRESS
    )
    innermost: argparse.ArgumentParser = parser
    for name, summary in COMMANDS.items():
        child = commands.add_parser(name, **_properties(summary))
        if name == command:
            module = importlib.import_module(f"sightline.cli.{MODULES.get(name, name.replace('-', '_'))}")
            if hasattr(module, "SUBCOMMANDS"):
                child.epilog = module.EXAMPLE
                innermost = add_subcommands(child, command, module.SUBCOMMANDS, subcommand)
            else:
                module.register(child)
                innermost = child
    return parser, innermost


# -- Commands with subcommands: all with their summaries, the executed one with its options


def _properties(summary: str) -> dict[str, Any]:
    return {
        "description": sentence(summary),
        "allow_abbrev": False,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _grouped() -> str:
    """The commands with their summaries, each group under its name."""
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size().columns, 100) - 4
    lines = []
    for group, commands in GROUPS.items():
        lines.append(f"{group}:")
        for name, summary in commands.items():
            lines += textwrap.wrap(
                f"{name:<12} {summary}", width, initial_indent="  ", subsequent_indent=" " * 15
            )
    return "\n".join(lines)


def add_subcommands(
    parser: argparse.ArgumentParser,
    command: str,
    subcommands: Mapping[str, tuple[Callable[[argparse.ArgumentParser], None], str]],
    chosen: str,
) -> argparse.ArgumentParser:
    """Add the subcommands with their summaries; the chosen one ('' for none) gets its options."""
    if chosen and not chosen.startswith("-") and chosen not in subcommands:
        raise unknown_name(f"subcommand of {command}", chosen, subcommands)
    parser.set_defaults(execute=lambda _: _print_help(parser))
    below = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    innermost = parser
    for name, (register, summary) in subcommands.items():
        child = below.add_parser(name, help=summary, **_properties(summary))
        if name == chosen:
            innermost = child
            register(child)
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


# -- The entry of the command line: find the command, execute it, turn errors into a message and exit
#    status

OK, UNANSWERED, WRONG, FAILED, INTERRUPTED = 0, 1, 2, 3, 130


def entry() -> NoReturn:
    """Execute the `sightline` script: `main`, then exit with its status, also if nobody reads the output."""
    open_streams()
    _handle_as_interrupt()
    status = main()
    # The status stands: a further Ctrl-C would only replace it by the death of this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        flush_output()
    except EnvironmentFailedError as error:
        status = _stop(error, FAILED, debug=False) if status == OK else status
    sys.exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute a command, by default the one of this process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        return _execute([word for word in words if word != "--debug"])
    except UserError as error:
        return _stop(error, WRONG, debug)
    except BrokenPipeError:
        discard(sys.stdout)
        return OK
    except EnvironmentFailedError as error:
        return _stop(error, FAILED, debug)
    except Exception as error:
        return _stop_unexpected(error, debug)
    except KeyboardInterrupt as interruption:
        message = str(interruption) or "all answers so far are kept; run the same command to continue"
        print_note(f"interrupted; {message}")
        return INTERRUPTED


def _handle_as_interrupt() -> None:
    """Handle signals that stop jobs like Ctrl-C, which keeps all answers so far.

    Cluster schedulers send SIGTERM, a terminal that closes SIGHUP, which `nohup` ignores.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does now: an event loop cancels its work, which then says what it keeps."""
    if signal.getsignal(signal.SIGINT) in (None, signal.SIG_IGN, signal.SIG_DFL):
        signal.default_int_handler(number, frame)
    signal.raise_signal(signal.SIGINT)


def _execute(words: list[str]) -> int:
    command = words[0] if words else ""
    if not command.startswith("-") and command not in COMMANDS and command:
        if command in WORDS_OF_OTHERS:
            ours = f"sightline {WORDS_OF_OTHERS[command]}"
            raise UserError(f"unknown command '{command}': it is `{ours}` here; see `{ours} --help`")
        raise unknown_name("command", command, COMMANDS)
    parser, innermost = build_parser(words)
    if command in COMMANDS:
        _refuse_unknown_options(words, innermost)
    options, unexpected = parser.parse_known_args(words)
    if unexpected:
        remedy = "a value follows its own option, as --model A --model B"
        innermost.error(f"unrecognized arguments: {' '.join(unexpected)}; {remedy}")
    if not hasattr(options, "execute"):
        parser.print_help()
        return OK
    if getattr(options, "plugin", None):
        from sightline.plugins import plug_in

        for file in options.plugin:
            plug_in(file)
    status: int = options.execute(options)
    return status


def _refuse_unknown_options(words: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Raise UserError for an option that does not exist, before argparse reports a missing one."""
    known = list(parser._option_string_actions)
    for word in words:
        name = word.partition("=")[0]
        if name == "--":
            return
        if name.startswith("--") and name not in known:
            raise UserError(f"unknown option {name}{did_you_mean(name, known)}; see `{parser.prog} --help`")


def _stop_unexpected(error: Exception, debug: bool) -> int:
    """Report an error of a plugin, of the operating system, or of Sightline itself."""
    from sightline.plugins import error_of_plugin

    if of_plugin := error_of_plugin(error):
        return _stop(error, WRONG, debug, str(of_plugin))
    if isinstance(error, OSError):
        return _stop(error, FAILED, debug)
    return _stop(error, FAILED, debug, f"internal error: {error!r}; use --debug for the traceback")


def _stop(error: BaseException, status: int, debug: bool, message: str = "") -> int:
    text = f"sightline: {message or error}"
    if debug:
        from traceback import format_exception

        text = "".join(format_exception(error)) + text
    for line in text.split("\n"):
        print_note(line)
    return status
