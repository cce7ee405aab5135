"""Connecting to a Ray cluster that is absent, silent or needs a token: an error soon, and Ctrl-C works."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import UserError
from sightline.replicas import on_ray
from sightline.replicas.on_ray import connected

ray = pytest.importorskip("ray", reason="needs the extra `cluster`")

HOST = "127.0.0.2"
SOON = 20.0
"""Seconds; Ray itself tries for minutes."""


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A port that accepts connections and never says anything."""
    with socket.create_server((HOST, 0)) as server:
        yield server


def address_of(server: socket.socket) -> str:
    return f"{HOST}:{server.getsockname()[1]}"


def test_an_address_where_nothing_listens_is_refused_at_once(listening: socket.socket) -> None:
    address = address_of(listening)
    listening.close()
    began = time.monotonic()
    expected = f"no Ray cluster at {address}: Connection refused; expected a node of a running cluster"
    with pytest.raises(UserError, match=expected), connected(address):
        pass
    assert time.monotonic() - began < SOON
    assert not ray.is_initialized()


def test_a_server_that_is_no_ray_cluster_is_refused_after_a_while(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "CONNECT_SECONDS", 0.5)
    expected = f"no Ray cluster at {address_of(listening)}: no answer within 0.5 s"
    with pytest.raises(UserError, match=expected), connected(address_of(listening)):
        pass


def test_a_signal_that_another_thread_receives_ends_the_wait_soon(listening: socket.socket) -> None:
    """The system may give it to any thread, and Python handles it in the main one, which must wake up."""

    def send() -> None:
        # Ray's own connection follows the look at the port.
        held.extend(listening.accept()[0] for _ in range(2))
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        sent.append(time.monotonic())

    held: list[socket.socket] = []
    sent: list[float] = []
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    with pytest.raises(KeyboardInterrupt), connected(address_of(listening)):
        pass
    assert time.monotonic() - sent[0] < SOON
    sender.join()
    for connection in held:
        connection.close()


def test_a_cluster_that_refuses_the_token_is_no_absent_cluster(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused:
        def __init__(self, **_: Any) -> None:
            raise ray.exceptions.AuthenticationError("RPC error: InvalidAuthToken")

    monkeypatch.setattr(sys.modules["ray._raylet"], "GcsClient", Refused)
    expected = r"needs a token: .* missing or wrong; expected RAY_AUTH_MODE=token"
    with pytest.raises(UserError, match=expected), connected(address_of(listening)):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_ctrl_c_ends_a_command_that_connects(
    number: int, listening: socket.socket, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"group":"g","variant":"a","prompt":"Red?","references":["yes"]}\n')
    command = [
        sys.executable,
        "-c",
        "from sightline.cli.main import entry; entry()",
        "run",
        f"groups:{pairs}",
    ]
    words = ["--model", "mini", "--on", f"ray:{address_of(listening)}", "--dry-run"]
    with subprocess.Popen(
        [*command, *words],
        cwd=tmp_path,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as driver:
        listening.settimeout(60)
        # The look at the port is the first connection, and Ray's own one is the second.
        held = [listening.accept()[0] for _ in range(2)]
        driver.send_signal(number)
        began = time.monotonic()
        _, errors = driver.communicate(timeout=60)
    for connection in held:
        connection.close()
    assert time.monotonic() - began < SOON
    assert driver.returncode == 130, errors
    assert "interrupted" in errors
