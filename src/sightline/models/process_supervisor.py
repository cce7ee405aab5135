"""Runs a command for as long as the starting process holds our standard input open, and no longer.

A separate script (`python -I -S process_supervisor.py SECONDS COMMAND...`) that needs only Python. The
pipe closes however the starting process ends, even by `kill -9`. Its exit status is that of the command,
128 + N if signal N killed it, 127 if it could not be started.
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
    """Run a command in its own process group until it ends, or nobody holds our standard input.

    At the end the group gets SIGTERM, then SIGKILL as soon as the command has ended or after `grace`
    seconds.

    Args:
        grace: Seconds between SIGTERM and SIGKILL.
    """
    wakeup, signal_pipe = os.pipe()
    os.set_blocking(signal_pipe, False)
    signal.set_wakeup_fd(signal_pipe)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127
    try:
        with contextlib.suppress(KeyboardInterrupt):
            _wait(process, wakeup)
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
    status = process.wait()
    return status if status >= 0 else 128 - status


def _wait(process: subprocess.Popen[bytes], wakeup: int) -> None:
    """Wait until the process ends (SIGCHLD writes to `wakeup`) or our standard input closes."""
    while process.poll() is None:
        ready, _, _ = select.select([STANDARD_INPUT, wakeup], [], [])
        if STANDARD_INPUT in ready:
            return
        os.read(wakeup, 64)


def _signal_group(group: int, number: int) -> None:
    # After the command other processes of its group may live, or none; macOS raises PermissionError then.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(run(sys.argv[2:], float(sys.argv[1])))
