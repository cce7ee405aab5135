"""Starts replicas of a local model as actors of Ray, and replaces those that are lost."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Mapping
from itertools import count
from typing import Any

from sightline.config import Config, RaySettings
from sightline.errors import EnvironmentFailedError, UserError
from sightline.output import print_note
from sightline.replicas.base import Joined, Launcher, Left, Target
from sightline.replicas.on_ray import node_entry
from sightline.replicas.on_ray.connecting import first_line
from sightline.replicas.on_ray.connection import Connection, connected, is_of_node, losses
from sightline.replicas.on_ray.hosted import ModelCopy
from sightline.replicas.on_ray.replica import RayReplica

WAIT_SECONDS = 60.0
"""Seconds after which a replica that has not started is reported."""
MAX_CALLS = 4096
"""Requests that an actor takes at a time; the engine limits them long before."""


def ray_launcher(target: Target, address: str, config: Config) -> Launcher:
    """Find out how many replicas a cluster has room for; nothing is started."""
    if target.spec != "mini" and not target.spec.startswith("hf/"):
        raise UserError("--on ray runs local models only", found=target.spec, expected="hf/... or mini")
    with connected(address) as connection:
        size, replicas = replica_size(connection.ray, config.ray)
    if not replicas:
        raise UserError(
            f"no node of the Ray cluster has {_described(size)} for a replica",
            expected="a larger node, or fewer `cpus` or `gpus` in [ray] of sightline.toml",
        )
    return RayLauncher(target, address, size, config.ray.replicas or replicas, config.ray.restarts)


class RayLauncher:
    """Keeps a number of actors running, as far as the cluster has room."""

    def __init__(
        self, target: Target, address: str, size: Mapping[str, int], replicas: int, restarts: int
    ) -> None:
        self.place = f"Ray{f' at {address}' if address else ''}, {_described(size)} each"
        self.replicas = replicas
        self._target = target
        self._address = address
        self._size = size
        self._restarts = restarts
        self._numbers = count(1)

    async def run(self, joined: Joined, left: Left) -> None:
        """Start the replicas and replace those that end, until cancelled; then end those that are left."""
        copy = ModelCopy(self._target.spec, self._target.args, self._target.weights, os.getcwd())
        with connected(self._address) as connection:
            actors = connection.ray.remote(node_entry.Actor).options(
                num_cpus=self._size["CPU"],
                num_gpus=self._size["GPU"],
                max_restarts=0,
                max_concurrency=MAX_CALLS,
                scheduling_strategy="SPREAD",
            )
            keeping = [
                asyncio.create_task(self._keep(connection, actors, pickle.dumps(copy), joined, left))
                for _ in range(self.replicas)
            ]
            try:
                reasons = await asyncio.gather(*keeping)
            finally:
                connection.models.pop(self, None)
                for task in keeping:
                    task.cancel()
                await asyncio.wait(keeping)
            raise EnvironmentFailedError(
                f"{self._target.spec}: every replica has ended, and none is started any more"
                f" (restarts of each replica: {self._restarts}); one of them: {reasons[0]}"
            )

    async def _keep(
        self, connection: Connection, actors: Any, payload: bytes, joined: Joined, left: Left
    ) -> str:
        """Keep one replica running: an actor, then the next one; returns why the last one has ended."""
        ray = connection.ray
        reason = ""
        for _ in range(1 + self._restarts):
            actor = actors.remote()
            name = ""
            try:
                kind, node, why = await self._started(connection, actor.start.remote(payload))
                if kind == "wrong":
                    raise UserError(f"node {node}: {why}")
                if kind == "failed":
                    raise EnvironmentFailedError(f"node {node}: {why}")
                name = f"replica {next(self._numbers)} on node {node}"
                connection.models[self] = self._target.spec
                joined(RayReplica(name, ray, actor))
                await actor.until_lost.remote()
            except losses(ray) as error:
                reason = first_line(error)
                if name:
                    left(name, reason, is_explained=is_of_node(error))
                else:
                    print_note(f"{self._target.spec}: a replica ended while it loaded ({reason})")
            finally:
                ray.kill(actor)
        return reason

    async def _started(self, connection: Connection, reply: Any) -> tuple[str, str, str]:
        """The reply of an actor's start. UserError if another model of this command has all the room."""
        starting = asyncio.ensure_future(reply)
        try:
            done, _ = await asyncio.wait({starting}, timeout=WAIT_SECONDS)
            models = connection.models
            if not done and models and self not in models:
                other = next(iter(models.values()))
                raise UserError(
                    f"no room for {self._target.spec}: replicas of {other} have the nodes",
                    expected="`replicas` in [ray] of sightline.toml such that those of model and judges fit",
                )
            if not done:
                print_note(
                    f"{self._target.spec}: a replica waits for {_described(self._size)}, or loads slowly"
                )
            started: tuple[str, str, str] = await starting
        finally:
            starting.cancel()
        return started


def replica_size(ray: Any, settings: RaySettings) -> tuple[dict[str, int], int]:
    """Decide how large a replica is.

    Returns:
        CPUs and GPUs of a replica, by Ray's names; how many replicas the cluster has room for: now, or, if it
        has none now, without other work; 0 if no node is large enough.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    with_gpu = any(node.get("GPU", 0) >= 1 for node in nodes)
    gpus = int(with_gpu) if settings.gpus is None else settings.gpus
    if settings.cpus is not None:
        cpus = settings.cpus
    elif gpus:
        cpus = 1
    else:
        # A replica uses all processors of its node, because each one holds the whole model in memory.
        cpus = int(min((node["CPU"] for node in nodes if node.get("CPU", 0) >= 1), default=1))
    size = {"CPU": cpus, "GPU": gpus}
    room = sum(_room(node, size) for node in nodes)
    # Without free room now, the replicas wait for those of another model to end.
    return size, min(room, _room(ray.available_resources(), size)) or room


def _room(resources: Mapping[str, float], size: Mapping[str, int]) -> int:
    return min(int(resources.get(name, 0) // number) for name, number in size.items() if number)


def _described(size: Mapping[str, int]) -> str:
    return " and ".join(
        f"{number} {name}{'s' * (number != 1)}" for name, number in size.items() if number or name == "CPU"
    )
