"""Processes may be killed at any moment: nothing is left running, nothing is lost, no byte differs."""

from __future__ import annotations

import hashlib
import operator
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sightline.builders.run import map_in_processes
from sightline.cli.main import main
from sightline.formats.journal import JOURNAL


def draw(path: Path, seed: int, side: int = 24) -> None:
    values = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def content(folder: Path) -> dict[str, str]:
    """Every file of a folder, hidden ones too, with its digest."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def build(photos: Path, out: Path, processes: int = 1) -> list[str]:
    words = ["build", "perturb", str(photos), "--kind", "blur", "--prompt", "What?", "--out", str(out)]
    return [*words, "--processes", str(processes), "--quiet"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images enough to be interrupted in, and the undisturbed build of them."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(40):
        draw(folder / "photos" / f"p{number}.png", number, 200)
    assert main(build(folder / "photos", folder / "whole")) == 0
    return folder


def finished(out: Path) -> int:
    """How many sources the journal holds."""
    try:
        return (out / JOURNAL).read_bytes().count(b"\n") - 1
    except FileNotFoundError:
        return 0


def start(many: Path, out: Path, least: int) -> subprocess.Popen[str]:
    """A build with so many finished sources."""
    command = [sys.executable, "-m", "sightline", *build(many / "photos", out, processes=2)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while finished(out) < least and process.poll() is None:
        time.sleep(0.002)
    return process


def workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that a build started to work for it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")
@pytest.mark.parametrize("least", [1, 12, 38])
def test_after_kill_9_no_worker_is_left_and_the_same_command_gives_the_bytes_of_an_undisturbed_run(
    many: Path, tmp_path: Path, least: int
) -> None:
    out = tmp_path / "out"
    with start(many, out, least) as process:
        left = workers(process)
        process.kill()
    assert left
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{one}/cmdline").exists() for one in left) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [one for one in left if Path(f"/proc/{one}/cmdline").exists()] == []
    assert main(build(many / "photos", out)) == 0
    assert content(out) == content(many / "whole")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")
def test_a_killed_worker_is_reported_and_the_same_command_continues(many: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with start(many, out, 1) as process:
        os.kill(workers(process)[0], signal.SIGKILL)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "has died" in error
    assert "run the same command again" in error
    assert "Traceback" not in error
    assert finished(out) >= 1
    assert main(build(many / "photos", out)) == 0
    assert content(out) == content(many / "whole")


def test_an_exception_of_a_task_reaches_the_caller_for_any_number_of_processes() -> None:
    for processes in (1, 2):
        with pytest.raises(ZeroDivisionError):
            list(map_in_processes(partial(operator.truediv, 1), [4.0, 2.0, 0.0, 1.0], processes))


def test_every_task_is_done_once() -> None:
    for processes in (1, 2):
        assert sorted(map_in_processes(abs, list(range(-9, 0)), processes)) == list(range(1, 10))
