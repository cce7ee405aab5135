"""The connection to a cluster: one for the process, closed by its last user, nothing of Ray changed."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.replicas.on_ray.conftest import TwoNodes

from sightline.errors import UserError
from sightline.replicas.on_ray import connected

pytestmark = pytest.mark.cluster


def test_the_connection_is_shared_and_leaves_ray_as_it_was(nodes: TwoNodes) -> None:
    with connected(nodes.address) as first:
        worker: Any = sys.modules["ray._private.worker"]
        with connected(nodes.address) as second:
            assert first is second
            with (
                pytest.raises(UserError, match="one command can use one Ray cluster"),
                connected("10.0.0.1:1"),
            ):
                pass
        assert first.ray.is_initialized()
        assert worker.print_to_stdstream.__module__ != worker.__name__
    assert not first.ray.is_initialized()
    assert worker.print_to_stdstream.__module__ == worker.__name__


def test_a_connection_of_the_calling_program_stays_open_and_prints(nodes: TwoNodes) -> None:
    ray = pytest.importorskip("ray")
    ray.init(nodes.address, log_to_driver=False, logging_level="critical")
    try:
        with connected(nodes.address):
            worker: Any = sys.modules["ray._private.worker"]
            assert worker.print_to_stdstream.__module__ == worker.__name__
        assert ray.is_initialized()
    finally:
        ray.shutdown()
