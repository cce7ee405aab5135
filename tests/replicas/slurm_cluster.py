"""A real Slurm with two nodes for tests: in a temporary folder, on loopback, as root and without systemd."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sightline.models import process_supervisor

GUARD = [sys.executable, "-I", "-S", process_supervisor.__file__, "3"]
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "scontrol", "sinfo")

SETTINGS = {
    "ClusterName": "tests",
    "SlurmctldHost": "localhost(127.0.0.1)",
    "SlurmUser": "root",
    "AuthType": "auth/munge",
    "CredType": "cred/munge",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "SwitchType": "switch/none",
    "MpiDefault": "none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "SchedulerParameters": "batch_sched_delay=0,sched_min_interval=0,sched_interval=1",
    "ReturnToService": "2",
    "KillWait": "2",
}


def why_not() -> str:
    """Why no cluster can be started here; '' if one can."""
    missing = [name for name in PROGRAMS if find(name) is None]
    if missing:
        return f"needs {', '.join(missing)} (apt-get install slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "needs root, as slurmd and munged do"


def find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


class SlurmCluster:
    """A running cluster; `environment` makes the commands of Slurm speak to it."""

    def __init__(self) -> None:
        # The path of a socket has at most 107 characters.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="sightline-slurm-", dir="/tmp"))
        self._daemons: list[subprocess.Popen[bytes]] = []
        folder.chmod(0o755)
        for name in ("munge", "state", "spool-n1", "spool-n2"):
            (folder / name).mkdir(mode=0o700)
        key = folder / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        ports = free_ports(3)
        settings = {
            **SETTINGS,
            # A requeued job waits until the credential of its first start has expired.
            "AuthInfo": f"socket={folder}/munge/socket,cred_expire=6",
            "SlurmctldPort": str(ports[0]),
            "StateSaveLocation": f"{folder}/state",
            "SlurmdSpoolDir": f"{folder}/spool-%n",
            "SlurmctldPidFile": f"{folder}/slurmctld.pid",
            "SlurmdPidFile": f"{folder}/slurmd-%n.pid",
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        for name, port in zip(("n1", "n2"), ports[1:], strict=True):
            lines.append(f"NodeName={name} NodeHostName=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2")
        lines.append("PartitionName=debug Nodes=n1,n2 Default=YES MaxTime=60 State=UP")
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self.environment = {"SLURM_CONF": f"{folder}/slurm.conf"}

    def start(self) -> None:
        folder = self.folder / "munge"
        self._daemon(
            "munged", "--force", "--foreground", f"--socket={folder}/socket", f"--key-file={folder}/key",
            f"--log-file={folder}/log", f"--pid-file={folder}/pid", f"--seed-file={folder}/seed",
        )  # fmt: skip
        soon((folder / "socket").exists)
        self._daemon("slurmctld", "-D")
        for name in ("n1", "n2"):
            self._daemon("slurmd", "-D", "-N", name)
        soon(lambda: self.run("sinfo", "-h", "-o", "%T %D").strip() == "idle 2")

    def run(self, program: str, *words: str) -> str:
        """The output of a command of Slurm."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            [str(find(program)), *words], env=environment, capture_output=True, text=True, check=False
        ).stdout

    def jobs(self, *states: str) -> list[str]:
        """The jobs in one of these states, by default those that have not ended."""
        wanted = ("-t", ",".join(states)) if states else ()
        return self.run("squeue", "-h", "-r", "-o", "%i", *wanted).split()

    def stop(self) -> None:
        self.run("scancel", "--user=root")
        with suppress(AssertionError):
            soon(lambda: not self.jobs())
        for daemon in reversed(self._daemons):
            assert daemon.stdin is not None
            daemon.stdin.close()
        for daemon in self._daemons:
            daemon.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _daemon(self, program: str, *words: str) -> None:
        """Start a daemon, which ends with this process."""
        with (self.folder / f"{program}-{len(self._daemons)}.log").open("wb") as log:
            self._daemons.append(
                subprocess.Popen(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        process_supervisor.__file__,
                        "3",
                        str(find(program)),
                        *words,
                    ],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **self.environment},
                    start_new_session=True,
                )
            )


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def soon(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is true."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "not in time"
        time.sleep(0.05)
