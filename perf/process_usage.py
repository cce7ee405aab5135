"""Whole processes: wall time, processor time and peak memory of one, and one that draws synthetic data."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


def draw_scenes(folder: Path, benchmark: str, count: int, *, seed: int = 0) -> Path:
    """Draw synthetic data of a benchmark into a new folder of a folder, and return it.

    A process of its own: scripts of perf/ do not see the folder training/ of the checkout.
    """
    words = ["--benchmark", benchmark, "--count", str(count), "--seed", str(seed), "--out", str(folder)]
    subprocess.run([sys.executable, "-m", "training.scenes", *words], cwd=ROOT, check=True, stdout=sys.stderr)
    return folder / benchmark


class ProcessUsage(NamedTuple):
    """What a finished process used.

    Attributes:
        wall: Seconds of wall time.
        cpu: Seconds of processor time, of all its child processes too.
        memory: Peak memory of its largest process, in MB.
    """

    wall: float
    cpu: float
    memory: float


def run_python(
    arguments: Sequence[str],
    source: Path | None = None,
    folder: Path | None = None,
    python: str = sys.executable,
) -> ProcessUsage:
    """Run Python with arguments, and measure the process; its standard output is discarded.

    Args:
        arguments: The arguments, such as a script and its options.
        source: A folder of packages to import before the installed ones.
        folder: The current folder of the process; None for that of this one.
        python: The interpreter; this one by default.

    Returns:
        What the process used.

    Raises:
        SystemExit: The process failed; the message holds its standard error.
    """
    environment = {**os.environ, "PYTHONPATH": str(source)} if source else None
    with tempfile.TemporaryFile("w+") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            [python, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
            cwd=folder,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{arguments} failed ({process.returncode}): {errors.read()}")
    return ProcessUsage(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
