"""The command line's entry: finds the command, runs it, turns errors into one message and an exit status."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

import sightline
from sightline.cli.pipe import stop_writing
from sightline.errors import EnvironmentFailedError, UserError, did_you_mean, unknown_name

COMMANDS = {
    "quickstart": "draw small data sets and run CODIS, II-Bench, ConTextual and MM-R3 on them",
    "list": "benchmarks, settings, options, published rows",
    "build": "make data of your own: rephrase, restyle, mask, perturb, scenes, caption, read, equivalence, "
    "curate, annotate, synthesize, verify, rate, split",
    "adapter": "train a small module that makes a model more consistent (MM-R3, section 5)",
    "data": "fetch the public data sets, check or describe a data folder",
    "run": "ask a model, judge its answers, report",
    "sweep": "run models and values of options against each other, one table of all",
    "score": "judge and report answers that were collected before",
    "compare": "how far one run is from another, group by group, and whether that is significant",
    "report": "tables of runs or results folders",
    "judge-report": "how far judges and metrics agree with people, and which can be told apart",
    "export": "answers in the formats that others read",
    "import": "predictions of other tools as answers.jsonl",
}

GC_THRESHOLDS = (100_000, 50, 100)
"""A run makes many small records and few cycles: at Python's default the collector takes a fifth of it."""

OK, UNANSWERED, WRONG, FAILED, INTERRUPTED = 0, 1, 2, 3, 130


class Parser(argparse.ArgumentParser):
    """An argument parser that suggests the nearest option and never abbreviates."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the call and exit with status 2."""
        raise UserError(message.replace("argument ", ""), expected=f"see `{self.prog} --help`")


def entry() -> NoReturn:
    """The `sightline` script: `main`, then out at once.

    By then every file and store is closed; taking a large process apart object by object costs a fifth of a
    second that nobody needs (mypy leaves in the same way).
    """
    # What stops jobs on a cluster is an interruption like Ctrl-C: everything answered so far is kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    status = main()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, 1, 2, 3, 4, 5 or 130 (docs/results.md)."""
    gc.set_threshold(*GC_THRESHOLDS)
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        return _run([word for word in words if word != "--debug"])
    except UserError as error:
        return _stop(error, WRONG, debug)
    except BrokenPipeError:
        stop_writing()
        return OK
    except (EnvironmentFailedError, OSError) as error:
        return _stop(error, FAILED, debug)
    except Exception as error:
        return _stop(error, FAILED, debug, f"this should not happen ({error!r}); --debug shows where")
    except KeyboardInterrupt as interruption:
        kept = str(interruption) or "everything answered so far is kept, the same command goes on"
        print(f"interrupted; {kept}", file=sys.stderr)
        return INTERRUPTED


def _run(words: list[str]) -> int:
    command = words[0] if words else ""
    if not command.startswith("-") and command not in COMMANDS and command:
        raise unknown_name("command", command, COMMANDS)
    parser = _parser(command, words[1] if len(words) > 1 else "")
    _refuse_unknown_options(words, parser)
    options = parser.parse_args(words)
    if not hasattr(options, "execute"):
        parser.print_help()
        return OK
    status: int = options.execute(options)
    return status


def _parser(command: str, second: str) -> Parser:
    parser = Parser(
        prog="sightline",
        description="Measures what multimodal models understand when one image must be seen in different "
        "lights: another context (CODIS), wording, style or mask (MM-R3), text in it (ConTextual), a meaning "
        "behind it (II-Bench).",
        epilog="example: sightline run codis --model http://localhost:8000/v1#llava --data data/codis. "
        "Exit status: 0 done; 1 done, but some probes have no answer; 2 the call or its input is wrong; "
        "3 the environment failed; 4 a budget is reached; 5 a condition of --fail-if holds; 130 interrupted",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sightline {sightline.__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        child = commands.add_parser(
            name,
            help=summary,
            description=summary,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # Only the command that is run is imported: the others cost a line of help each.
        if name == command:
            module = importlib.import_module(f"sightline.cli.{name.replace('-', '_')}_command")
            if hasattr(module, "KINDS"):
                module.register(child, second)
            else:
                module.register(child)
    return parser


def _refuse_unknown_options(words: list[str], parser: argparse.ArgumentParser) -> None:
    """Before anything else is said of the call: the nearest option to one that does not exist."""
    deep = 0
    while deep < len(words) and words[deep] in _commands(parser):
        parser = _commands(parser)[words[deep]]
        deep += 1
    if not deep:
        return
    known = [option for action in parser._actions for option in action.option_strings]
    for word in words[deep:]:
        name = word.partition("=")[0]
        if name == "--":
            return
        if name.startswith("--") and name not in known:
            raise UserError(
                f"unknown option {name}{did_you_mean(name, known)}", expected=f"see `{parser.prog} --help`"
            )


def _commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The commands below a parser; none where it is the last word."""
    if parser._subparsers is None:
        return {}
    found: Mapping[str, argparse.ArgumentParser] = parser._subparsers._group_actions[0].choices  # type: ignore[assignment]
    return found


def _stop(error: BaseException, status: int, debug: bool, message: str = "") -> int:
    if debug:
        raise error
    print(f"sightline: {message or error}", file=sys.stderr)
    return status
