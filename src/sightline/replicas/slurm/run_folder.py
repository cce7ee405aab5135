"""The folder that driver and nodes share: key, script, logs, and a file of each server that has started."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from sightline.config import SlurmProfile
from sightline.errors import UserError
from sightline.paths import cache_folder
from sightline.replicas.base import Target
from sightline.replicas.worker.key import read_key, write_key

LOG_BYTES = 4096
LOG_LINES = 15
_NOT_IN_SCRIPTS = frozenset('"\\\n')


class Announcement(Struct, frozen=True):
    """What a job writes before its server starts."""

    host: str
    port: int
    node: str
    restart: int


class RunFolder:
    """The folder of one driver at a time: a restarted driver finds the servers of the one before it."""

    def __init__(self, path: Path, lock: IO[str], key: str) -> None:
        self.path = path
        self.name = f"sightline-{path.name}"
        """The name of the jobs: that of the folder."""
        self.key = key
        self.script = path / "replica.sh"
        self._lock = lock

    def announcement(self, task: str) -> Announcement | None:
        """Read what a job has announced.

        Returns:
            The announcement; None if there is none yet.
        """
        try:
            return msgspec.json.decode((self.path / f"{task}.json").read_bytes(), type=Announcement)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def last_lines(self, task: str) -> list[str]:
        """The end of a job's log."""
        try:
            content = (self.path / f"{task}.log").read_bytes()[-LOG_BYTES:]
        except OSError:
            return []
        lines = content.decode("utf-8", "replace").splitlines()
        return [f"  {line}" for line in lines if line.strip()][-LOG_LINES:]

    def close(self, *, remove: bool) -> None:
        """Let go of the folder."""
        if remove:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def run_folder_name(target: Target, profile: SlurmProfile, command: list[str]) -> str:
    """The name of the folder for servers of one model under one profile."""
    told = [target.model.identity, profile, command, os.getcwd()]
    return sha256(msgspec.json.encode(told)).hexdigest()[:12]


def open_run_folder(name: str, profile: SlurmProfile) -> RunFolder:
    """Open the folder of a driver, or make it."""
    root = folder_of(profile)
    for number in count(1):
        path = root / (name if number == 1 else f"{name}-{number}")
        try:
            lock = _locked(path)
            if lock is not None:
                return RunFolder(path, lock, _key(path / "key"))
        except OSError as error:
            raise UserError(
                f"the folder of --on slurm cannot be written ({error.strerror})",
                file=path,
                expected="[slurm.PROFILE] folder: a folder that this machine and the nodes share",
            ) from None
    raise AssertionError


def folder_of(profile: SlurmProfile) -> Path:
    """The folder of the folders of all drivers."""
    root = Path(profile.folder).expanduser() if profile.folder else cache_folder() / "slurm"
    if wrong := sorted({character for character in str(root.absolute()) if character in _NOT_IN_SCRIPTS}):
        raise UserError(
            f"the folder of --on slurm has {' and '.join(map(repr, wrong))} in its name",
            file=root,
            expected="[slurm.PROFILE] folder: a name that sbatch can read",
        )
    return root.absolute()


def _locked(path: Path) -> IO[str] | None:
    """Make a folder and lock it; None while another driver uses it."""
    while True:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            lock = (path / "driver").open("a")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A driver that ends removes the folder, and its lock with it.
                if os.path.samestat(os.fstat(lock.fileno()), (path / "driver").stat()):
                    return lock
            except BlockingIOError:
                lock.close()
                return None
            except OSError:
                lock.close()
                raise
            lock.close()


def _key(file: Path) -> str:
    try:
        return write_key(file)
    except FileExistsError:
        return read_key(file)
