"""Runs a command for as long as whoever started it holds our standard input open, and no longer.

A script of its own (`python -I -S guard.py SECONDS COMMAND...`) that needs nothing but Python. The pipe is
closed however the other process ends, by `kill -9` too. Its exit status is that of the command, 128 + N where
that was killed by signal N, 127 where it could not be started.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

STANDARD_INPUT = 0


def run(command: Sequence[str], grace: float) -> int:
    """Run the command, in a process group of its own, until it ends or nobody holds our standard input.

    At the end its group gets SIGTERM, and SIGKILL as soon as the command has ended, or after `grace` seconds:
    the rest of a group has no time beyond its command's.
    """
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127
    try:
        with contextlib.suppress(KeyboardInterrupt):
            _wait(process, bell)
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
    status = process.wait()
    return status if status >= 0 else 128 - status


def _wait(process: subprocess.Popen[bytes], bell: int) -> None:
    """Wait until the process ends (the bell rings: SIGCHLD) or standard input is closed at the other end."""
    while process.poll() is None:
        ready, _, _ = select.select([STANDARD_INPUT, bell], [], [])
        if STANDARD_INPUT in ready:
            return
        os.read(bell, 64)


def _signal_group(group: int, number: int) -> None:
    # Where the command has ended others of its group may live, or none; macOS says that in its own way.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(run(sys.argv[2:], float(sys.argv[1])))
