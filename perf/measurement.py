"""One measured part: its report, and when, where and at which commit it was measured."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import time
from pathlib import Path

from msgspec import Struct

from report import Report

UNKNOWN = "unknown"


class Measurement(Struct, frozen=True, kw_only=True):
    """The results of one part.

    Attributes:
        date: The day, as YYYY-MM-DD.
        commit: The checkout, shortened; with '+' if files differed from it.
        machine: Cores, memory, system and Python.
        minutes: How long the script took.
        additions: Seconds of processor time for 10 million additions, before and after: how fast the machine
            was.
        command: The script with its arguments.
        report: Tables and notes.
        missing: Why nothing was measured; None if it was.
    """

    date: str
    commit: str
    machine: str
    minutes: float
    additions: tuple[float, float]
    command: str
    report: Report
    missing: str | None = None


def commit() -> str:
    """The commit of the checkout.

    Returns:
        Its short name; '+' follows if other files than the page and the results differ; 'unknown' outside a
        checkout.
    """
    name = _git("rev-parse", "--short=9", "HEAD")
    written = (":(exclude)docs/performance.md", ":(exclude)perf/results")
    differs = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", *written)
    return f"{name}+" if name and differs else name or UNKNOWN


def is_commit(name: str) -> bool:
    """Whether a name of `commit` says exactly what was measured: other changes have the same '+'.

    Args:
        name: The name.

    Returns:
        Whether it is that of a commit, without changes.
    """
    return name != UNKNOWN and not name.endswith("+")


def _git(*words: str) -> str:
    here = Path(__file__).resolve().parents[1]
    found = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else ""


def describe_machine() -> str:
    """Describe the machine as far as it affects times.

    Returns:
        One phrase.
    """
    model = ""
    if (info := Path("/proc/cpuinfo")).exists():
        names = re.findall(r"model name\s*: (.+)", info.read_text())
        model = f" ({names[0].strip()})" if names else ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores{model}, {memory:.0f} GB, {platform.system()}, "
        f"Python {platform.python_version()}"
    )


def seconds_of_additions() -> float:
    """Measure how fast the machine is now.

    Returns:
        Seconds of processor time for 10 million additions in a loop.
    """
    total, began = 0, time.process_time()
    for number in range(10_000_000):
        total += number
    return time.process_time() - began


def today() -> str:
    """The day.

    Returns:
        YYYY-MM-DD.
    """
    return datetime.date.today().isoformat()
