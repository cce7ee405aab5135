"""Replicas in processes of this machine: one worker for each GPU."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys

from sightline.errors import EnvironmentFailedError
from sightline.models.served import POLL_SECONDS, Server, ServerError
from sightline.models.server_command import ServerCommand
from sightline.replicas.base import Joined, Left, Target
from sightline.replicas.remote import RemoteReplica
from sightline.replicas.worker.client import WorkerClient
from sightline.replicas.worker.command import worker_words
from sightline.replicas.worker.wire import KEY_VARIABLE

MAX_STARTS = 3
"""How often the worker of a GPU is started, if it ends."""

STARTUP_SECONDS = 1200.0


class Processes:
    """Starts workers for one model on this machine, each with a GPU of its own if there are any."""

    place = "this machine"

    def __init__(self, target: Target, replicas: int) -> None:
        """Start nothing yet.

        Args:
            target: The model.
            replicas: The number of processes.
        """
        self.replicas = replicas
        self._target = target

    async def run(self, joined: Joined, left: Left) -> None:
        """Keep the workers running until cancelled.

        Args:
            joined: Called with each worker that is ready.
            left: Called with each worker that has ended.

        Raises:
            EnvironmentFailedError: A worker has ended too often, or cannot start.
        """
        gpus = visible_gpus()
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(self.replicas):
                    gpu = gpus[number % len(gpus)] if gpus else None
                    tasks.create_task(self._keep(number, gpu, joined, left))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _keep(self, number: int, gpu: str | None, joined: Joined, left: Left) -> None:
        """Start the worker of one GPU, again where it ends."""
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
                async with WorkerClient(address, self._target.model.name, key) as client:
                    replica = RemoteReplica(name, address, client.send)
                    joined(replica)
                    while not server.ended:
                        await asyncio.sleep(POLL_SECONDS)
                    why = f"the worker {server.ended}; its log: {server.log}"
                    replica.lose(why)
                    left(name, why)
            except ServerError as error:
                why = "\n".join([str(error), *error.last_lines])
                break
            finally:
                await server.stop()
        raise EnvironmentFailedError(f"{name} of {self._target.model.name}: {why}")

    @property
    def _command(self) -> ServerCommand:
        model = self._target.model
        words = worker_words(self._target.spec, self._target.args)
        return ServerCommand((sys.executable, *words), model.name, model.identity)


def visible_gpus() -> list[str]:
    """List the GPUs that this process may use.

    Returns:
        Their numbers or UUIDs, as for CUDA_VISIBLE_DEVICES; empty without GPUs.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [gpu.strip() for gpu in chosen.split(",") if gpu.strip() and gpu.strip() != "-1"]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]
