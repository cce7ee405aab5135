"""The sbatch script of a replica: it announces address and port, then becomes the server."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from sightline.config import SlurmProfile
from sightline.models.served import Served
from sightline.models.server_command import KEY_OF_SERVER, launch_with_key
from sightline.replicas.base import Target
from sightline.replicas.worker.command import worker_words
from sightline.replicas.worker.wire import KEY_VARIABLE


def server_words(target: Target, profile: SlurmProfile) -> list[str]:
    """The command of the server, without host and port."""
    model = target.model
    python = profile.python or sys.executable
    if not isinstance(model, Served):
        words = [python, *worker_words(target.spec, target.args)]
        return words if profile.processes == 1 else [*words, "--processes", str(profile.processes)]
    return launch_with_key(model.command.command, shlex.split(profile.python))


def batch_script(target: Target, profile: SlurmProfile, *, name: str, folder: Path) -> str:
    shared = shlex.quote(str(folder))
    words = [*shlex.split(profile.container), *server_words(target, profile)]
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {flag}" for flag in _flags(profile, name, folder)),
            f"folder={shared}",
            "task=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}",
            'rm -f "$folder/$task.json"',
            *profile.setup,
            f'export {KEY_VARIABLE}="$(cat "$folder/key")"',
            f'export {KEY_OF_SERVER}="${KEY_VARIABLE}"',
            f"host={profile.address}",
            "while port=$((20000 + RANDOM % 12000)); (: < /dev/tcp/127.0.0.1/$port) 2>/dev/null; do :; done",
            """printf '{"host":"%s","port":%d,"node":"%s","restart":%d}' "$host" "$port" \\""",
            '  "$SLURMD_NODENAME" "${SLURM_RESTART_COUNT:-0}" > "$folder/.$task"',
            'mv "$folder/.$task" "$folder/$task.json"',
            f'exec {shlex.join(words)} --host 0.0.0.0 --port "$port"',
            "",
        ]
    )


def _flags(profile: SlurmProfile, name: str, folder: Path) -> list[str]:
    named = {
        "partition": profile.partition,
        "account": profile.account,
        "qos": profile.qos,
        "time": profile.time,
        "gres": profile.gres,
        "cpus-per-task": profile.cpus,
        "mem": profile.mem,
    }
    return [
        f"--job-name={name}",
        f"--array=0-{profile.replicas - 1}",
        f"--nodes={profile.nodes}",
        *(f"--{flag}={value}" for flag, value in named.items() if value is not None),
        "--requeue",
        "--open-mode=append",
        f'--output="{str(folder).replace("%", "%%")}/%A_%a.log"',
        *profile.flags,
    ]
