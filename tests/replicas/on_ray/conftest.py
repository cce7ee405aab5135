"""A Ray cluster in this machine: a head without processors, and nodes with one each; all on loopback."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_models import folder

__all__ = ["folder"]

HEAD = "127.0.0.2"
MEMORY = 80_000_000
"""Bytes of the object store of each node, the least that Ray takes is 75 MB."""


class TwoNodes:
    """A cluster of two nodes; one of them can be killed and replaced."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self._nodes: dict[str, Any] = {}
        self._numbers = iter(range(3, 250))
        self.fill()

    def fill(self) -> None:
        """Start nodes until there are two."""
        while len(self._nodes) < 2:
            name = f"127.0.0.{next(self._numbers)}"
            self._nodes[name] = self.cluster.add_node(
                num_cpus=1, object_store_memory=MEMORY, node_ip_address=name
            )

    def kill_one(self) -> str:
        """Kill the raylet of a node and its workers; returns its name."""
        name, node = self._nodes.popitem()
        self.cluster.remove_node(node, allow_graceful=False)
        return name

    @property
    def address(self) -> str:
        address: str = self.cluster.address
        return address


@pytest.fixture(scope="session")
def _cluster() -> Iterator[TwoNodes]:
    pytest.importorskip("ray", reason="needs the extra `cluster`")
    from ray.cluster_utils import Cluster

    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Workers import the functions of the tests.
    path = [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH", "")]
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    # Sockets have short paths only.
    folder = tempfile.mkdtemp(prefix="ray-")
    # Ray writes the address of a cluster here, wherever its files are, and does not make the folder.
    Path(tempfile.gettempdir(), "ray").mkdir(exist_ok=True)
    cluster: Any = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": MEMORY,
            "include_dashboard": False,
            "node_ip_address": HEAD,
            "temp_dir": folder,
            # A killed node is noticed in a second, not in ten.
            "_system_config": {
                "health_check_initial_delay_ms": 1000,
                "health_check_period_ms": 300,
                "health_check_timeout_ms": 1000,
                "health_check_failure_threshold": 2,
            },
        },
    )
    try:
        yield TwoNodes(cluster)
    finally:
        cluster.shutdown()
        patch.undo()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def nodes(_cluster: TwoNodes) -> TwoNodes:
    _cluster.fill()
    return _cluster


def until(condition: Callable[[], bool], seconds: float = 240.0) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "took too long"
        time.sleep(0.05)


def kill_when(condition: Callable[[], bool], nodes: TwoNodes) -> threading.Thread:
    """Kill a node in the background as soon as a condition holds."""

    def follow() -> None:
        until(condition)
        nodes.kill_one()

    thread = threading.Thread(target=follow)
    thread.start()
    return thread
