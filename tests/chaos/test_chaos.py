"""The short form of the trials: one kill, one stop, a full disk, broken servers, a kill on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.disturbances import Case, run_case
from tests.chaos.full_disk import why_not
from tests.chaos.workload import CONCURRENCY, Server, Workload
from tests.postgres_server import PostgresServer

LEASE = 3.0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "disturbance"), [("judge", "kill"), ("run", "stop")])
def test_what_was_answered_is_not_paid_for_again(tmp_path: Path, name: str, disturbance: str) -> None:
    """Results are equal; only what was in flight, or was not stored yet, is sent twice."""
    server = Server()
    try:
        workload = Workload(tmp_path, server, LEASE)
        trial = run_case(Case(name, disturbance, 1, 2 * LEASE), workload, server, workload.store("s"))
    finally:
        server.stop()
    # How soon an answer is stored depends on the load of the machine.
    assert trial.doubled.in_flight + trial.doubled.just_answered <= 2 * CONCURRENCY
    assert len(trial.doubled.others) <= CONCURRENCY


@pytest.mark.slow
@pytest.mark.postgres
def test_what_was_answered_is_not_paid_for_again_on_a_server(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    server = Server()
    try:
        workload = Workload(tmp_path, server, LEASE, postgres)
        trial = run_case(Case("run", "kill", 1, 0.0), workload, server, workload.store("s"))
    finally:
        server.stop()
    assert trial.doubled.in_flight + trial.doubled.just_answered <= 2 * CONCURRENCY
    assert len(trial.doubled.others) <= CONCURRENCY


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "disturbance", "seed"),
    [
        pytest.param("run", "disk", 1, marks=pytest.mark.skipif(bool(why_not()), reason=why_not())),
        ("run", "broken", 0),
        ("judge", "broken", 2),
    ],
)
def test_results_are_equal_after_a_full_disk_and_with_a_broken_server(
    tmp_path: Path, name: str, disturbance: str, seed: int
) -> None:
    server = Server()
    try:
        workload = Workload(tmp_path, server, LEASE)
        trial = run_case(Case(name, disturbance, seed, 0.0), workload, server, workload.store("s"))
    finally:
        server.stop()
    assert len(trial.doubled.others) <= CONCURRENCY
