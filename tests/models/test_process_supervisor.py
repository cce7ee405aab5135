"""The guard of a command: what becomes of it when nobody holds the guard's standard input any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from sightline.models import process_supervisor

Guarded = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    """Starts the guard of a Python program, or of the words given; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, program: str = "", grace: float = 60) -> subprocess.Popen[str]:
        command = words or (sys.executable, "-c", program)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", process_supervisor.__file__, str(grace), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(
    ("program", "status"),
    [("", 0), ("import sys; sys.exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 128 + 9)],
)
def test_its_status_is_that_of_the_command(guarded: Guarded, program: str, status: int) -> None:
    assert guarded(program=program).wait(30) == status


def test_a_command_that_is_none_is_said(guarded: Guarded) -> None:
    process = guarded("/no/such/program")
    _, err = process.communicate()
    assert process.returncode == 127
    assert err == "/no/such/program cannot be started: No such file or directory\n"


@pytest.mark.parametrize("end", ["closed", "terminated"])
def test_the_command_is_asked_to_end_and_has_its_time_for_it(guarded: Guarded, end: str) -> None:
    process = guarded(
        program="import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit(7)))\n"
        "print('ready', flush=True)\n"
        "signal.pause()"
    )
    assert _line(process) == "ready"
    if end == "closed":
        assert process.stdin is not None
        process.stdin.close()
    else:
        process.terminate()
    assert process.wait(30) == 7


def test_a_command_that_does_not_end_is_killed_when_its_time_is_over(guarded: Guarded) -> None:
    process = guarded(
        program="import signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()",
        grace=0.2,
    )
    assert _line(process) == "ready"
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(30) == 128 + signal.SIGKILL


def test_what_the_command_leaves_behind_is_killed(guarded: Guarded) -> None:
    worker = "import time; time.sleep(600)"
    process = guarded(
        program="import subprocess, sys\n"
        f"print(subprocess.Popen([sys.executable, '-c', {worker!r}]).pid, flush=True)"
    )
    worker_pid = int(_line(process))
    assert process.wait(30) == 0
    # Its end closes the last of the pipe's other ends.
    assert process.stdout is not None
    assert process.stdout.read() == ""
    with pytest.raises(ProcessLookupError):
        os.killpg(worker_pid, 0)


def test_what_is_typed_at_the_terminal_does_not_reach_the_command(guarded: Guarded) -> None:
    process = guarded(program="import os\nprint(os.getpid(), os.getpgid(0), flush=True)")
    pid, group = _line(process).split()
    assert pid == group
    assert process.wait(30) == 0
