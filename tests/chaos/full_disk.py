"""A disk that is full from a certain write of a process on; it needs a C compiler, and no rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def why_not() -> str:
    """Why no disk can be made full here; '' if it can."""
    if sys.platform != "linux":
        return "LD_PRELOAD is of Linux"
    return "" if shutil.which("cc") else "needs a C compiler (cc)"


class Ended(NamedTuple):
    """How a process ended: its exit status, its writes, and when the first of them failed, if any did."""

    status: int
    writes: int
    full_at: float | None


class FullDisk:
    """Runs processes of a trial whose disk becomes full."""

    def __init__(self, folder: Path) -> None:
        """Compile what makes writes fail.

        Args:
            folder: Where the result and logs are kept.
        """
        self._folder = folder
        self._library = folder / "full_disk.so"
        words = ["cc", "-shared", "-fPIC", "-o", str(self._library), str(HERE / "full_disk.c"), "-ldl"]
        subprocess.run(words, check=True)

    def run(self, arguments: Sequence[object], writes: int | None = None) -> Ended:
        """Run `victim.work` to its end.

        Args:
            arguments: Its arguments, which are read from their `repr`.
            writes: How many writes succeed; None for all.

        Returns:
            How it ended.
        """
        log = self._folder / "disk.log"
        log.unlink(missing_ok=True)
        code = f"from pathlib import *; from tests.chaos.victim import work; work(*{tuple(arguments)!r})"
        limit = {} if writes is None else {"CHAOS_DISK_WRITES": str(writes)}
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        more = {"LD_PRELOAD": str(self._library), "CHAOS_DISK_LOG": str(log), "PYTHONPATH": path}
        ended = subprocess.run([sys.executable, "-c", code], env={**os.environ, **limit, **more}, timeout=180)
        found = dict(line.split() for line in log.read_text().splitlines())
        full_at = float(found["full"]) if "full" in found else None
        return Ended(ended.returncode, int(found["writes"]), full_at)
