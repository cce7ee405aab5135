"""Replicas in processes of this machine: one worker for each GPU."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from collections.abc import Sequence

from sightline.config import Config
from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.served import POLL_SECONDS, Server, ServerError
from sightline.models.server_command import ServerCommand
from sightline.output import print_note
from sightline.replicas.base import Joined, Left, Target
from sightline.replicas.remote import RemoteReplica, is_healthy
from sightline.replicas.worker.client import WorkerClient
from sightline.replicas.worker.command import worker_words
from sightline.replicas.worker.wire import KEY_VARIABLE

MAX_STARTS = 3
"""How often the worker of a GPU is started, if it ends."""

MAX_PROCESSES = 1024

STARTUP_SECONDS = 1200.0

LOOK_SECONDS = 5.0
"""How often a process is asked whether it is healthy while no request has reported it as lost."""

SILENT_SECONDS = 60.0
"""How long a process that lives may say nothing before it is ended."""

SILENT_LOOKS = 3
"""How often it must have said nothing: after a pause of this process alone, one look fails."""


def launcher(target: Target, number: str, config: Config) -> Processes:
    """Create the launcher of `--on processes[:N]`; nothing is started."""
    if target.spec != "mini" and not target.spec.startswith("hf/"):
        raise UserError(
            "--on processes runs local models only",
            found=target.spec,
            expected="hf/... or mini; vLLM and SGLang use several GPUs themselves (docs/cluster.md)",
        )
    if number and not (number.isascii() and number.isdigit() and 1 <= int(number) <= MAX_PROCESSES):
        raise UserError("--on processes:N is wrong", found=number, expected=f"1 to {MAX_PROCESSES}")
    return Processes(target, int(number) if number else len(visible_gpus()) or 1)


class Processes:
    """Starts workers for one model on this machine, each with a GPU of its own if there are any."""

    place = "this machine"

    def __init__(self, target: Target, replicas: int) -> None:
        self.replicas = replicas
        self._target = target
        self._ever_ready = False
        self._last_lines: Sequence[str] = ()

    async def run(self, joined: Joined, left: Left) -> None:
        """Keep the workers running until cancelled."""
        gpus = visible_gpus()
        keeping: list[asyncio.Task[str]] = []
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.replicas):
                gpu = gpus[number % len(gpus)] if gpus else None
                keeping.append(tasks.create_task(self._keep(number, gpu, joined, left)))
        reason = keeping[0].result()
        if not self._ever_ready:
            raise UserError(f"{self._target.model.name}: {reason}", quoted=self._last_lines)
        raise EnvironmentFailedError(
            f"{self._target.model.name}: every process has ended, and none is started any more"
            f" ({MAX_STARTS} starts of each); one of them: {reason}"
        )

    async def _keep(self, number: int, gpu: str | None, joined: Joined, left: Left) -> str:
        """Start the worker of one GPU, again where it ends; returns why the last one has ended."""
        name = f"process {number + 1}" + (f" on GPU {gpu}" if gpu is not None else "")
        why = ""
        for _ in range(MAX_STARTS):
            key = secrets.token_urlsafe(32)
            environment = {KEY_VARIABLE: key}
            if gpu is not None:
                environment["CUDA_VISIBLE_DEVICES"] = gpu
            server = Server(self._command, environment=environment, key=key)
            try:
                address = await server.start(STARTUP_SECONDS)
                self._ever_ready = True
                async with WorkerClient(address, self._target.model.name, key) as client:
                    why = await _use(server, name, address, client, joined, left)
            except ServerError as error:
                why, self._last_lines = str(error), error.last_lines
                break
            finally:
                await server.stop()
        print_note(f"{self._target.model.name}: {name} is not started again: {why}")
        return f"{name}: {why}"

    @property
    def _command(self) -> ServerCommand:
        model = self._target.model
        words = worker_words(self._target.spec, self._target.args)
        return ServerCommand((sys.executable, *words), model.name, model.identity)


async def _use(
    server: Server, name: str, address: str, client: WorkerClient, joined: Joined, left: Left
) -> str:
    """Let requests come to a worker until its process ends or is silent; returns why it has ended.

    A process that lives joins again after a request reported it as lost, as soon as it is healthy. Requests
    have no time limit, so only these looks notice a process that is stopped or hangs.
    """
    why = "it is not needed any more"
    replica = RemoteReplica(name, address, client.send)
    joined(replica)
    looked = silent_since = time.monotonic()
    silent_looks = 0
    try:
        while not server.ended:
            await asyncio.sleep(POLL_SECONDS)
            if not (replica.is_lost or silent_looks) and time.monotonic() - looked < LOOK_SECONDS:
                continue
            looked = time.monotonic()
            if await is_healthy(address):
                silent_looks = 0
                if replica.is_lost:
                    replica = RemoteReplica(name, address, client.send)
                    joined(replica)
                continue
            silent_since = silent_since if silent_looks else looked
            silent_looks += 1
            if silent_looks >= SILENT_LOOKS and time.monotonic() - silent_since >= SILENT_SECONDS:
                break
        how = server.ended or f"did not answer for {SILENT_SECONDS:g} s"
        why = f"the worker {how}; its log: {server.log}"
    finally:
        replica.lose(why)
        left(name, why)
    return why


def visible_gpus() -> list[str]:
    """List the GPUs that this process may use."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [gpu.strip() for gpu in chosen.split(",") if gpu.strip() and gpu.strip() != "-1"]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]
