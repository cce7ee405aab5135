"""The entry of the command line: find the command, execute it, turn errors into a message and exit status."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import sightline
from sightline.cli.kinds import sentence
from sightline.cli.pipe import discard_output
from sightline.errors import EnvironmentFailedError, UserError, did_you_mean, unknown_name

COMMANDS = {
    "quickstart": "evaluate on small synthetic data sets in the layouts of CODIS, II-Bench, ConTextual and "
    "MM-R3, without a download",
    "list": "list benchmarks, their settings, options and published rows",
    "build": "build your own data: rephrase, restyle, mask, perturb, scenes, caption, read, equivalence, "
    "curate, annotate, synthesize, verify, rate, split",
    "adapter": "train a small module that makes a model more consistent (MM-R3, section 5)",
    "data": "download public data sets; check or describe a data folder",
    "run": "send a benchmark to a model, judge its answers, compute the metrics",
    "sweep": "run every combination of models and values of options",
    "score": "judge answers that were collected before, compute the metrics",
    "compare": "compare runs group by group, with significance tests",
    "report": "print tables of runs or results folders",
    "judge-report": "measure how well judges and metrics agree with humans",
    "export": "write answers in the formats of other tools",
    "import": "convert predictions of other tools to answers.jsonl",
    "completion": "print the completion script of a shell: bash, zsh or fish",
}

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

GC_THRESHOLDS = (100_000, 50, 100)
"""A run makes many small records and few cycles: Python's default thresholds cost a fifth of its time."""

OK, UNANSWERED, WRONG, FAILED, INTERRUPTED = 0, 1, 2, 3, 130


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UserError and accepts no abbreviated options."""

    def error(self, message: str) -> NoReturn:
        """Raise UserError for a wrong call (exit status 2)."""
        raise UserError(message.replace("argument ", ""), expected=f"see `{self.prog} --help`")


def entry() -> NoReturn:
    """Execute the `sightline` script: `main`, then exit without finalization.

    All files and stores are closed by then. Finalization of a large process takes 0.2 s without a use; mypy
    exits in the same way.
    """
    # Cluster schedulers stop jobs by SIGTERM: handle it like Ctrl-C, which keeps all answers so far.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if "_ARGCOMPLETE" in os.environ:
        from sightline.cli.completion_command import complete

        complete()
    status = main()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute a command.

    Args:
        arguments: The words after `sightline`; None takes those of this process.

    Returns:
        The exit status: 0, 1, 2, 3, 4, 5 or 130 (docs/results.md).
    """
    gc.set_threshold(*GC_THRESHOLDS)
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        return _execute([word for word in words if word != "--debug"])
    except UserError as error:
        return _stop(error, WRONG, debug)
    except BrokenPipeError:
        discard_output()
        return OK
    except (EnvironmentFailedError, OSError) as error:
        return _stop(error, FAILED, debug)
    except Exception as error:
        return _stop(error, FAILED, debug, f"internal error: {error!r}; use --debug for the traceback")
    except KeyboardInterrupt as interruption:
        message = str(interruption) or "everything answered so far is kept, run the same command to continue"
        print(f"interrupted; {message}", file=sys.stderr)
        return INTERRUPTED


def build_parser(words: Sequence[str]) -> tuple[Parser, argparse.ArgumentParser]:
    """Build the parser of a command line; only the module of its command is imported.

    Args:
        words: The words after `sightline`.

    Returns:
        The parser of the whole line, and the parser of the innermost command, as of `build rephrase`.
    """
    command, kind = [*words, "", ""][:2]
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
        child = commands.add_parser(
            name,
            help=summary,
            description=sentence(summary),
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == command:
            module = importlib.import_module(f"sightline.cli.{name.replace('-', '_')}_command")
            if hasattr(module, "KINDS"):
                innermost = module.register(child, kind)
            else:
                module.register(child)
                innermost = child
    return parser, innermost


def _execute(words: list[str]) -> int:
    command = words[0] if words else ""
    if not command.startswith("-") and command not in COMMANDS and command:
        raise unknown_name("command", command, COMMANDS)
    parser, innermost = build_parser(words)
    if command in COMMANDS:
        _refuse_unknown_options(words, innermost)
    options = parser.parse_args(words)
    if not hasattr(options, "execute"):
        parser.print_help()
        return OK
    if getattr(options, "plugin", None):
        from sightline.registry import plug_in

        for file in options.plugin:
            plug_in(file)
    status: int = options.execute(options)
    return status


def _refuse_unknown_options(words: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Raise UserError for an option that does not exist, before argparse reports a missing one."""
    known = re.findall(r"--[a-z][a-z-]*", parser.format_usage())
    for word in words:
        name = word.partition("=")[0]
        if name == "--":
            return
        if name.startswith("--") and name not in (*known, "--help"):
            raise UserError(
                f"unknown option {name}{did_you_mean(name, known)}", expected=f"see `{parser.prog} --help`"
            )


def _stop(error: BaseException, status: int, debug: bool, message: str = "") -> int:
    if debug:
        raise error
    print(f"sightline: {message or error}", file=sys.stderr)
    return status
