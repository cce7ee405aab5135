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
from sightline.models.resolve import ModelOptions, resolve
from sightline.output import print_note
from sightline.replicas.base import Joined, Launcher, Left, Target
from sightline.replicas.on_ray import node_entry
from sightline.replicas.on_ray.connection import connected, first_line, losses
from sightline.replicas.on_ray.hosted import ModelCopy
from sightline.replicas.on_ray.replica import RayReplica

MAX_STARTS = 3
"""Actors of one replica that may end, one after the other, before the model is open."""
WAIT_SECONDS = 60.0
"""Seconds after which a replica that has not started is reported."""
MAX_CALLS = 4096
"""Requests that an actor takes at a time; the engine limits them long before."""


def ray_launcher(target: Target, address: str, config: Config) -> Launcher:
    """Find out how many replicas a cluster has room for; nothing is started.

    Args:
        target: The model.
        address: HOST:PORT of the cluster; '' for RAY_ADDRESS or the one that runs on this machine.
        config: The configuration with the table [ray].

    Returns:
        The launcher.

    Raises:
        UserError: The model is not local, there is no cluster, or it has no room for a replica.
    """
    if target.spec != "mini" and not target.spec.startswith("hf/"):
        raise UserError("--on ray runs local models only", found=target.spec, expected="hf/... or mini")
    with connected(address) as ray:
        size, replicas = replica_size(ray, config.ray)
    if not replicas:
        raise UserError(
            f"no node of the Ray cluster has {_described(size)} for a replica",
            expected="a larger node, or fewer `cpus` or `gpus` in [ray] of sightline.toml",
        )
    return RayLauncher(target, address, size, config.ray.replicas or replicas)


class RayLauncher:
    """Keeps a number of actors running, as far as the cluster has room."""

    def __init__(self, target: Target, address: str, size: Mapping[str, int], replicas: int) -> None:
        """Start nothing yet.

        Args:
            target: The model.
            address: HOST:PORT of the cluster, or ''.
            size: CPUs and GPUs of a replica, by Ray's names.
            replicas: How many run at the same time.
        """
        self.place = f"Ray{f' at {address}' if address else ''}, {_described(size)} each"
        self.replicas = replicas
        self._target = target
        self._address = address
        self._size = size
        self._numbers = count(1)

    async def run(self, joined: Joined, left: Left) -> None:
        """Start the replicas and replace those that end, until cancelled; then end those that are left."""
        # The identity may be that of --model-id; a node compares the one of the weights.
        [model] = resolve(self._target.spec, ModelOptions(args=self._target.args))
        copy = ModelCopy(self._target.spec, self._target.args, model.identity, os.getcwd())
        with connected(self._address) as ray:
            actors = ray.remote(node_entry.Actor).options(
                num_cpus=self._size["CPU"],
                num_gpus=self._size["GPU"],
                max_restarts=0,
                max_concurrency=MAX_CALLS,
                scheduling_strategy="SPREAD",
            )
            keeping = [
                asyncio.create_task(self._keep(ray, actors, pickle.dumps(copy), joined, left))
                for _ in range(self.replicas)
            ]
            try:
                await asyncio.gather(*keeping)
            finally:
                _running.discard(self)
                for task in keeping:
                    task.cancel()
                await asyncio.wait(keeping)

    async def _keep(self, ray: Any, actors: Any, payload: bytes, joined: Joined, left: Left) -> None:
        """Keep one replica running: an actor, then the next one."""
        starts = 0
        while True:
            actor = actors.remote()
            name = ""
            try:
                kind, node, reason = await self._started(actor.start.remote(payload))
                if kind == "wrong":
                    raise UserError(f"node {node}: {reason}")
                if kind == "failed":
                    raise EnvironmentFailedError(f"node {node}: {reason}")
                starts, name = 0, f"replica {next(self._numbers)} on node {node}"
                _running.add(self)
                joined(RayReplica(name, ray, actor))
                await actor.until_lost.remote()
            except losses(ray) as error:
                if name:
                    left(name, first_line(error))
                    continue
                starts += 1
                if starts == MAX_STARTS:
                    raise EnvironmentFailedError(
                        f"{starts} replicas ended while they loaded {self._target.spec}: {first_line(error)}"
                    ) from None
            finally:
                ray.kill(actor)

    async def _started(self, reply: Any) -> tuple[str, str, str]:
        """The reply of an actor's start. UserError if another model of this command has all the room."""
        starting = asyncio.ensure_future(reply)
        try:
            done, _ = await asyncio.wait({starting}, timeout=WAIT_SECONDS)
            others = [launcher for launcher in _running if launcher is not self]
            if not done and others and self not in _running:
                raise UserError(
                    f"no room for {self._target.spec}: replicas of {others[0]._target.spec} have the nodes",
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

    Args:
        ray: The module, connected.
        settings: The table [ray].

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


_running: set[RayLauncher] = set()
"""The launchers of this process that have replicas."""
