"""The entry of the command line: find the command, execute it, turn errors into a message and exit status."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from sightline.cli.parser import COMMANDS, build_parser, option_names
from sightline.cli.printing import discard_output, flush_output
from sightline.errors import EnvironmentFailedError, UserError, did_you_mean, unknown_name
from sightline.text import print_note

OK, UNANSWERED, WRONG, FAILED, INTERRUPTED = 0, 1, 2, 3, 130


def entry() -> NoReturn:
    """Execute the `sightline` script: `main`, then exit with its status, also if nobody reads the output."""
    _handle_as_interrupt()
    if "_ARGCOMPLETE" in os.environ:
        from sightline.cli.completion import complete

        complete()
    status = main()
    # The status stands: a further Ctrl-C would only replace it by the death of this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    flush_output()
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
        discard_output()
        return OK
    except EnvironmentFailedError as error:
        return _stop(error, FAILED, debug)
    except Exception as error:
        return _stop_unexpected(error, debug)
    except KeyboardInterrupt as interruption:
        message = str(interruption) or "all answers so far are kept; run the same command to continue"
        # A terminal that hung up takes no message.
        with contextlib.suppress(OSError):
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
        raise unknown_name("command", command, COMMANDS)
    parser, innermost = build_parser(words)
    if command in COMMANDS:
        _refuse_unknown_options(words, innermost)
    options = parser.parse_args(words)
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
    known = option_names(parser)
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
