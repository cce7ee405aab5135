"""How large replicas are and how many a cluster has room for, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from sightline.config import RaySettings
from sightline.replicas.on_ray import replica_size

CPU_NODES = [{"CPU": 0.0}, {"CPU": 8.0}, {"CPU": 16.0}]
GPU_NODES = [{"CPU": 8.0}, {"CPU": 32.0, "GPU": 8.0}]


class FakeRay:
    """A cluster of nodes, of which some resources are in use."""

    def __init__(self, nodes: list[dict[str, float]], used: dict[str, float] | None = None) -> None:
        self._nodes = nodes
        self._used = used or {}

    def nodes(self) -> list[dict[str, Any]]:
        dead = {"Alive": False, "Resources": {"CPU": 99.0, "GPU": 99.0}}
        return [dead, *({"Alive": True, "Resources": node} for node in self._nodes)]

    def available_resources(self) -> dict[str, float]:
        names = {name for node in self._nodes for name in node}
        total = {name: sum(node.get(name, 0) for node in self._nodes) for name in names}
        return {name: number - self._used.get(name, 0) for name, number in total.items()}


@pytest.mark.parametrize(
    ("nodes", "used", "settings", "size", "replicas"),
    [
        (CPU_NODES, {}, RaySettings(), {"CPU": 8, "GPU": 0}, 3),
        (CPU_NODES, {"CPU": 10}, RaySettings(), {"CPU": 8, "GPU": 0}, 1),
        (CPU_NODES, {"CPU": 24}, RaySettings(), {"CPU": 8, "GPU": 0}, 3),
        (CPU_NODES, {}, RaySettings(cpus=2), {"CPU": 2, "GPU": 0}, 12),
        (GPU_NODES, {}, RaySettings(), {"CPU": 1, "GPU": 1}, 8),
        (GPU_NODES, {"GPU": 3}, RaySettings(gpus=2, cpus=4), {"CPU": 4, "GPU": 2}, 2),
        (GPU_NODES, {}, RaySettings(gpus=0, cpus=8), {"CPU": 8, "GPU": 0}, 5),
        (CPU_NODES, {}, RaySettings(gpus=1), {"CPU": 1, "GPU": 1}, 0),
    ],
)
def test_there_are_as_many_replicas_as_nodes_have_room_for(
    nodes: list[dict[str, float]],
    used: dict[str, float],
    settings: RaySettings,
    size: dict[str, int],
    replicas: int,
) -> None:
    assert replica_size(FakeRay(nodes, used), settings) == (size, replicas)
