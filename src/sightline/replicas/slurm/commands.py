"""The commands of Slurm: sbatch, squeue and scancel."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sightline.errors import UserError

SECONDS = 60.0
"""How long a command may take."""

ALIVE = frozenset({"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING",
                   "STAGE_OUT", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT",
                   "RESV_DEL_HOLD"})  # fmt: skip
"""The states of a job that has not ended."""

_KEPT = ("SLURM_CONF", "SLURM_CLUSTERS")


class Job(Struct, frozen=True):
    """One job of an array."""

    task: str
    state: str
    reason: str

    @property
    def is_alive(self) -> bool:
        """Whether it runs or may run."""
        return self.state in ALIVE

    @property
    def is_ending(self) -> bool:
        """Whether its processes are ending; if Slurm puts it back into the queue, it may run again."""
        return self.state == "COMPLETING"


class SlurmError(Exception):
    """A command of Slurm failed; the text is what it said."""


async def submit(script: Path, count: int) -> str:
    """Submit an array of jobs."""
    said = await _run("sbatch", "--parsable", f"--array=0-{count - 1}", str(script))
    return said.strip().splitlines()[-1].partition(";")[0]


async def check(script: Path) -> None:
    """Ask Slurm whether the jobs of a script could run."""
    await _run("sbatch", "--test-only", str(script))


async def jobs(name: str) -> list[Job]:
    said = await _run("squeue", "-h", "-r", "-a", "-t", "all", f"--name={name}", "-o", "%i|%T|%r")
    lines = [line.strip().split("|", 2) for line in said.splitlines()]
    return [Job(*line) for line in lines if len(line) == 3 and "_" in line[0]]


async def cancel(name: str) -> None:
    """Cancel all jobs of a name."""
    await _run("scancel", f"--name={name}")


async def cancel_job(task: str) -> None:
    await _run("scancel", task)


async def _run(*words: str) -> str:
    """Run a command; a driver that is itself a job does not hand its own settings on."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or not name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_"))
    }
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
    except FileNotFoundError:
        raise UserError(
            f"--on slurm: there is no program {words[0]} on this machine",
            expected="a machine from which jobs can be submitted",
        ) from None
    try:
        async with asyncio.timeout(SECONDS):
            out, errors = await process.communicate()
    except TimeoutError:
        raise SlurmError(f"{words[0]} gave no answer within {SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode:
        raise SlurmError(_said(words, errors))
    return out.decode("utf-8", "replace")


def _said(words: Sequence[str], errors: bytes) -> str:
    text = "; ".join(line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip())
    return text or f"{words[0]} failed"
