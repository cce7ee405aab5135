"""Calls that are cancelled at any moment: nothing leaks, and no call gets the reply of another one."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.models.http.raw_server import Peer, client_of, open_files, raw_server, whole

from sightline.models.http_client import CallError, HTTPClient, NoAnswerError


async def slow_echo(peer: Peer) -> None:
    """Replies with the body of each request, in pieces with pauses."""
    draws = random.Random(peer.number)
    while True:
        _, body = await peer.request()
        reply = whole(body)
        at = draws.randrange(len(reply))
        await asyncio.sleep(draws.choice([0, 0.001, 0.002]))
        await peer.send(reply[:at])
        await asyncio.sleep(draws.choice([0, 0.001, 0.002]))
        await peer.send(reply[at:])


async def echoed(client: HTTPClient, number: int) -> None:
    """A call whose reply must be its own."""
    body = f"{number}:".encode() + b"x" * (number * 7919 % 100_000)
    assert (await client.call("/", body)).body == body


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_calls_that_are_cancelled_leave_nothing_behind_and_later_calls_get_their_own_replies(
    host: str,
) -> None:
    """A name is looked up in a thread, and may have several IP addresses."""
    draws = random.Random(0)

    async def cancelled(client: HTTPClient, number: int, seconds: float) -> bool:
        call = asyncio.create_task(echoed(client, number))
        await asyncio.sleep(seconds)
        call.cancel()
        return isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)

    async def run() -> int:
        async with raw_server(slow_echo) as server:
            server.address = server.address.replace("127.0.0.1", host)
            # The first call imports modules and opens files of the event loop.
            async with client_of(server) as client:
                await echoed(client, 0)
            await server.closed()
            before, count = open_files(), 0
            async with client_of(server) as client:
                for number in range(0, 300, 10):
                    pauses = [draws.choice([0, draws.uniform(0, 0.008)]) for _ in range(10)]
                    ended = await asyncio.gather(
                        *(cancelled(client, number + index, pause) for index, pause in enumerate(pauses)),
                        *(echoed(client, 1000 + number + index) for index in range(3)),
                    )
                    count += sum(found is True for found in ended)
                for number in range(20):
                    await echoed(client, number)
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            assert all("_serve" in repr(task) for task in tasks)
            await server.closed()
            async with asyncio.timeout(5):
                while open_files() > before:  # sockets close in the next steps of the event loop
                    await asyncio.sleep(0.01)
            return count

    assert 100 < asyncio.run(run()) <= 300


@pytest.mark.parametrize("total", [0.001, 0.003])
def test_calls_that_are_out_of_time_leave_nothing_behind(total: float) -> None:
    async def one(client: HTTPClient, number: int) -> None:
        with contextlib.suppress(NoAnswerError):
            await echoed(client, number)

    async def run() -> None:
        async with raw_server(slow_echo) as server:
            async with client_of(server, total=total) as client:
                await asyncio.gather(*(one(client, number) for number in range(100)))
            await server.closed()

    asyncio.run(run())


def test_a_call_that_is_cancelled_closes_its_connection_at_once() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        assert await peer.reader.read() == b""

    async def run() -> None:
        async with raw_server(handler) as server, client_of(server) as client:
            call = asyncio.create_task(client.call("/", bytes(10)))
            await asyncio.sleep(0.05)
            assert server.open == 1
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await server.closed()

    asyncio.run(run())


def test_a_body_that_the_server_does_not_read_is_dropped_with_its_call() -> None:
    async def handler(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(5)

    async def run() -> None:
        async with raw_server(handler) as server, client_of(server, total=0.1) as client:
            with pytest.raises(NoAnswerError):
                await client.call("/", bytes(2**25))
        with pytest.raises(CallError):
            await client.call("/", b"")

    began = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - began < 3


CALLER = """
import asyncio, sys
from contextlib import aclosing
from sightline.models.http_client import Timeouts
from sightline.models.http_client import HTTPClient

async def run():
    async with aclosing(HTTPClient(sys.argv[1], None, Timeouts(60, 60))) as client:
        calls = [asyncio.create_task(client.call("/", bytes(10**6))) for _ in range(8)]
        print("began", flush=True)
        await asyncio.gather(*calls)

asyncio.run(run())
"""


@pytest.mark.parametrize("pause", [0, 0.002, 0.01, 0.05])
def test_ctrl_c_ends_a_process_with_calls_in_flight_at_once(pause: float, tmp_path: Path) -> None:
    script = tmp_path / "caller.py"
    script.write_text(CALLER)

    async def handler(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(60)

    async def run() -> tuple[int | None, bytes]:
        async with raw_server(handler) as server:
            words = [sys.executable, "-X", "dev", str(script), server.address]
            process = await asyncio.create_subprocess_exec(
                *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            assert process.stdout is not None
            assert process.stderr is not None
            await process.stdout.readline()
            await asyncio.sleep(pause)
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(5):
                said = await process.stderr.read()
                return await process.wait(), said

    status, said = asyncio.run(run())
    assert status == -signal.SIGINT
    assert b"KeyboardInterrupt" in said
    assert b"never" not in said
    assert b"ResourceWarning" not in said
