"""When the direct client uses a connection again, and how it and its limits of time end calls."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from contextlib import aclosing

import pytest
from tests.models.http.raw_server import (
    Handler,
    Peer,
    calls_and_connections,
    error_of,
    pair,
    replies,
    replies_once,
    reset,
    whole,
)

from sightline.models import http_client
from sightline.models.http_client import CallError, HTTPClient, NoAnswerError, Timeouts


def test_calls_one_after_the_other_share_a_connection_and_calls_at_a_time_have_one_each() -> None:
    async def run() -> tuple[int, int]:
        async with pair(replies(whole())) as (server, client):
            for _ in range(5):
                await client.call("/", b"{}")
            first = server.accepted
            await asyncio.gather(*(client.call("/", b"{}") for _ in range(70)))
            await asyncio.gather(*(client.call("/", b"{}") for _ in range(70)))
            return first, server.accepted

    assert asyncio.run(run()) == (1, 70)


@pytest.mark.parametrize(
    "data",
    [
        whole(b"{}", b"Connection: close"),
        whole(b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
def test_a_connection_is_not_used_again_where_the_server_closes_it(data: bytes) -> None:
    found, connections = calls_and_connections(replies(data), 3)
    assert [reply.body for reply in found] == [b"{}"] * 3
    assert connections == 3


def test_http_1_0_keeps_a_connection_only_where_it_says_so() -> None:
    data = whole(b"{}", b"Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert calls_and_connections(replies(data), 3)[1] == 1


def test_an_idle_connection_is_closed_before_servers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_client.IDLE_SECONDS == 4
    monkeypatch.setattr(http_client, "IDLE_SECONDS", 0.05)

    async def run() -> int:
        async with pair(replies(whole())) as (server, client):
            await client.call("/", b"{}")
            assert server.open == 1
            await server.closed()
            await client.call("/", b"{}")
            return server.accepted

    assert asyncio.run(run()) == 2


def closing_when_reused() -> Handler:
    """Closes each connection when its second request arrives."""

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(whole(b"%d" % peer.number))
        await peer.request()

    return handler


def test_a_post_is_not_repeated_where_the_server_closes_a_connection_as_it_is_used_again() -> None:
    """The caller decides: the server may have begun to answer."""

    async def run() -> tuple[str, bytes, int]:
        async with pair(closing_when_reused()) as (server, client):
            await client.call("/", b"{}")
            with pytest.raises(CallError) as caught:
                await client.call("/", b"{}")
            return str(caught.value), (await client.call("/", b"{}")).body, server.accepted

    message, body, accepted = asyncio.run(run())
    assert message == "the server closed the connection before its reply was complete"
    assert (body, accepted) == (b"2", 2)


def test_a_get_is_repeated_once_over_a_new_connection_in_that_case() -> None:
    found, connections = calls_and_connections(closing_when_reused(), 3, body=None)
    assert [reply.body for reply in found] == [b"1", b"2", b"3"]
    assert connections == 3


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\nConte", whole(b"abc")[:-1]])
def test_a_connection_that_ends_within_a_reply_fails(data: bytes) -> None:
    assert error_of(replies_once(data)) == "the server closed the connection before its reply was complete"


def test_a_reset_fails_with_the_error_of_the_system() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        reset(peer)

    assert error_of(handler) == "ClientOSError: [Errno 104] Connection reset by peer"


@pytest.mark.parametrize("closes", [True, False])
def test_a_reply_before_the_whole_request_is_sent_counts_and_the_rest_is_not_sent(closes: bool) -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        close = [b"Connection: close"] if closes else []
        await peer.send(whole(b"too large", *close, status=b"413 Content Too Large"))
        await asyncio.sleep(0.05)

    found, connections = calls_and_connections(handler, 2, body=bytes(2**25))
    assert [(reply.status, reply.body) for reply in found] == [(413, b"too large")] * 2
    assert connections == 2


def test_a_refused_connection_fails_with_the_error_of_the_system() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def run() -> None:
        async with aclosing(HTTPClient(f"http://127.0.0.1:{port}", None, Timeouts(5, 5))) as client:
            await client.call("/")

    with pytest.raises(CallError, match="ConnectionRefusedError") as caught:
        asyncio.run(run())
    assert isinstance(caught.value.cause, ConnectionRefusedError)


def test_a_host_that_does_not_exist_fails() -> None:
    async def run(host: str) -> None:
        async with aclosing(HTTPClient(f"http://{host}", None, Timeouts(5, 5))) as client:
            await client.call("/")

    for host in ("no-such-host.invalid", "a" * 64 + ".invalid"):
        with pytest.raises(CallError):
            asyncio.run(run(host))


# Limits of time


def test_a_server_that_does_not_reply_fails_at_the_limit_of_the_call() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(5)

    assert error_of(handler, total=0.1) == "no answer within 0.1 s"


def test_a_server_that_sends_a_byte_now_and_then_fails_at_the_limit_of_the_call() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        for byte in whole(bytes(500)):
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.01)

    began = time.monotonic()
    assert error_of(handler, total=0.2) == "no answer within 0.2 s"
    assert time.monotonic() - began < 2


def test_a_call_may_have_a_limit_of_its_own() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(5)

    async def run() -> None:
        async with pair(handler, total=60) as (_, client):
            await client.call("/", total=0.05)

    with pytest.raises(NoAnswerError, match=r"within 0\.05 s"):
        asyncio.run(run())


def test_a_connection_that_is_not_opened_in_time_fails_with_its_own_message() -> None:
    """The queue of this socket is full, and nobody accepts from it."""
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        address = f"http://127.0.0.1:{full.getsockname()[1]}"

        async def run() -> None:
            async with aclosing(HTTPClient(address, None, Timeouts(5, 0.1))) as client:
                await client.call("/")

        with pytest.raises(CallError, match=r"^no connection within 0\.1 s$"):
            asyncio.run(run())


def test_a_closed_client_calls_nobody_and_calls_in_flight_fail() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(5)

    async def run() -> None:
        async with pair(handler) as (server, client):
            call = asyncio.create_task(client.call("/", b"{}"))
            await asyncio.sleep(0.05)
            await client.aclose()
            with pytest.raises(CallError, match="closed"):
                await call
            with pytest.raises(CallError, match="the client is closed"):
                await client.call("/", b"{}")
            await client.aclose()
            assert server.accepted == 1

    asyncio.run(run())
