"""The direct client against servers that keep to HTTP, and against servers that do not."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from tests.models.http.raw_server import (
    Handler,
    Peer,
    RawServer,
    client_of,
    raw_server,
    replies,
    replies_once,
    whole,
)

from sightline.errors import UserError
from sightline.models import reply_body
from sightline.models.http import connection, direct
from sightline.models.http.interface import CallError, HTTPClient, NoAnswerError, Reply, Timeouts
from sightline.models.http.opening import open_client
from sightline.models.http.reply_reader import MAX_HEAD_BYTES

KEY = "sk-planted/0123+456=="


@contextlib.asynccontextmanager
async def pair(handler: Handler, total: float = 5) -> AsyncIterator[tuple[RawServer, HTTPClient]]:
    async with raw_server(handler) as server, client_of(server, total=total) as client:
        yield server, client


def calls(handler: Handler, count: int = 1, body: bytes | None = b"{}", total: float = 5) -> list[Reply]:
    """The replies to some calls, one after the other."""
    return calls_and_connections(handler, count, body, total)[0]


def calls_and_connections(
    handler: Handler, count: int = 1, body: bytes | None = b"{}", total: float = 5
) -> tuple[list[Reply], int]:
    async def run() -> tuple[list[Reply], int]:
        async with pair(handler, total) as (server, client):
            found = [await client.call("/v1/x", body) for _ in range(count)]
            return found, server.accepted

    return asyncio.run(run())


def error_of(handler: Handler, body: bytes | None = b"{}", total: float = 5) -> str:
    with pytest.raises(CallError) as caught:
        calls(handler, body=body, total=total)
    return str(caught.value)


# Requests


def requests_of(key: str | None = None, body: bytes | None = b"{}") -> bytes:
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.send(whole())

    async def run() -> None:
        async with raw_server(handler) as server, client_of(server, key) as client:
            await client.call("/chat/completions", body)
            heads.append(server.address.partition("//")[2].encode())

    asyncio.run(run())
    head, host = heads
    return head.replace(host, b"HOST")


def test_a_post_has_the_key_the_host_with_its_port_and_the_length_of_its_json() -> None:
    lines = requests_of(KEY, b'{"a": 1}').decode().split("\r\n")
    assert lines[0] == "POST /chat/completions HTTP/1.1"
    assert set(lines[1:-2]) == {
        "Host: HOST",
        "Accept: */*",
        "User-Agent: sightline/0.1.0",
        f"Authorization: Bearer {KEY}",
        "Content-Type: application/json",
        "Content-Length: 8",
    }


def test_a_get_has_no_body_and_without_a_key_no_authorization() -> None:
    lines = requests_of(body=None).decode().split("\r\n")
    assert lines[0] == "GET /chat/completions HTTP/1.1"
    assert {line.partition(":")[0] for line in lines[1:-2]} == {"Host", "Accept", "User-Agent"}


@pytest.mark.parametrize("key", ["a\r\nX: y", "a\nb", "a\0b", "a\x7f"])
def test_a_key_with_control_characters_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(UserError, match="the API key for h:80 contains a control character") as caught:
        open_client("http://h/v1", key, Timeouts(1, 1))
    assert "X: y" not in str(caught.value)


@pytest.mark.parametrize("path", ["/a\r\nX: y", "/a\nb", "/\x00"])
def test_a_path_with_control_characters_is_refused(path: str) -> None:
    async def run() -> None:
        async with pair(replies(whole())) as (_, client):
            await client.call(path)

    with pytest.raises(ValueError, match="control character"):
        asyncio.run(run())
    with pytest.raises(UserError, match="control character"):
        open_client("http://h" + path, None, Timeouts(1, 1))


def test_other_characters_of_a_path_are_encoded() -> None:
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.send(whole())

    async def run() -> None:
        async with pair(handler) as (_, client):
            await client.call("/a b/ü?c#d/%20")

    asyncio.run(run())
    assert heads[0].startswith(b"GET /a%20b/%C3%BC%3Fc%23d/%20 HTTP/1.1\r\n")


def test_a_large_body_arrives_whole() -> None:
    body = bytes(range(256)) * 2**15
    found: list[bytes] = []

    async def handler(peer: Peer) -> None:
        await asyncio.sleep(0.05)
        found.append((await peer.request())[1])
        await peer.send(whole())

    (reply,) = calls(handler, body=body)
    assert (reply.status, found) == (200, [body])


# Replies


def test_a_reply_has_its_status_its_body_and_its_headers_in_any_case() -> None:
    data = whole(b"wait", b"RETRY-After: 7", b"content-TYPE: text/plain", status=b"429 Too Many Requests")
    (reply,) = calls(replies(data))
    assert (reply.status, reply.body, reply.is_whole) == (429, b"wait", True)
    assert (reply.headers["retry-after"], reply.headers["content-type"]) == ("7", "text/plain")


def test_chunks_are_put_together_and_the_fields_after_them_are_ignored() -> None:
    data = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3;name=value\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nRetry-After: 9\r\n\r\n"
    )
    found, connections = calls_and_connections(replies(data), 3)
    assert [reply.body for reply in found] == [b"abc0123456789abcdef"] * 3
    assert all("retry-after" not in reply.headers for reply in found)
    assert connections == 1


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\n"])
def test_without_a_length_the_end_of_the_connection_ends_the_body(head: bytes) -> None:
    found, connections = calls_and_connections(replies_once(head + b"abc"), 2)
    assert [(reply.body, reply.is_whole) for reply in found] == [(b"abc", True)] * 2
    assert connections == 2


def test_a_reset_does_not_end_a_body_without_a_length() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nabc")
        await asyncio.sleep(0.05)
        reset(peer)

    assert "ConnectionResetError" in error_of(handler)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_a_status_without_a_body_needs_no_length(status: bytes) -> None:
    found, connections = calls_and_connections(replies(b"HTTP/1.1 %b\r\n\r\n" % status), 2)
    assert [reply.body for reply in found] == [b"", b""]
    assert connections == 1


def test_interim_replies_are_ignored() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nRetry-After: 1\r\n\r\n"
    (reply,) = calls(replies(interim + whole(b"abc")))
    assert (reply.status, reply.body) == (200, b"abc")
    assert "retry-after" not in reply.headers


def test_interim_replies_without_end_fail() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        while True:
            await peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 100)

    assert f"its headers are larger than {MAX_HEAD_BYTES:,} bytes" in error_of(handler)


def test_another_protocol_that_the_server_switches_to_fails() -> None:
    data = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nbinary"
    assert "not HTTP" in error_of(replies(data))


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"<html>busy</html>",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
    ],
)
def test_bytes_that_are_no_reply_fail_with_the_reason(data: bytes) -> None:
    assert error_of(replies(data)).startswith("the reply cannot be read: not HTTP: ")


def test_an_unknown_transfer_coding_fails_with_its_name() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
    assert "Transfer-Encoding is 'gzip, chunked'" in error_of(replies(data))


@pytest.mark.parametrize("head", [b"X: y", b"X", b"X: y\r\n" * 50])
def test_headers_without_end_fail_at_the_limit(head: bytes) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n" + head)
        while True:
            await peer.send(head if b"\n" in head else bytes([head[-1]]) * 1000)

    assert f"its headers are larger than {MAX_HEAD_BYTES:,} bytes" in error_of(handler)


def test_fields_after_the_last_chunk_without_end_fail_at_the_limit() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: ")
        while True:
            await peer.send(b"y" * 1000)

    assert "its headers are larger" in error_of(handler)


# Compressed replies, which nobody asked for


def raw_deflate(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(body) + stream.flush()


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (b"gzip", gzip.compress(b"abc" * 999)),
        (b"X-GZIP", gzip.compress(b"abc" * 999)),
        (b"deflate", zlib.compress(b"abc" * 999)),
        (b"deflate", raw_deflate(b"abc" * 999)),
        (b"identity", b"abc" * 999),
    ],
)
def test_a_reply_that_is_compressed_nevertheless_is_decompressed(coding: bytes, data: bytes) -> None:
    (reply,) = calls(replies(whole(data, b"Content-Encoding: " + coding)))
    assert reply.body == b"abc" * 999


@pytest.mark.parametrize(
    ("coding", "data", "reason"),
    [
        (b"br", b"abc", "compressed with 'br', which is not supported"),
        (b"gzip, gzip", b"abc", "compressed with 'gzip, gzip'"),
        (b"gzip", b"abc", "cannot be decompressed"),
        (b"deflate", b"\xff\xff", "cannot be decompressed"),
        (b"gzip", gzip.compress(b"abc")[:-1], "the end of the compressed body is missing"),
        (b"gzip", gzip.compress(b"abc") + b"more", "data follow the end"),
    ],
)
def test_a_compressed_reply_that_cannot_be_read_fails_with_the_reason(
    coding: bytes, data: bytes, reason: str
) -> None:
    assert reason in error_of(replies(whole(data, b"Content-Encoding: " + coding)))


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_body_over_the_limit_is_cut_there_and_its_rest_is_not_received(coding: str) -> None:
    sent = 0
    stream = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)

    async def handler(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n".encode())
        for _ in range(200):
            data = bytes(2**20)
            await peer.send(stream.compress(data) if coding == "gzip" else data)
            sent += 1

    async def run() -> tuple[int, bool]:
        async with pair(handler) as (_, client):
            reply = await client.call("/", b"{}")
            return len(reply.body), reply.is_whole

    tracemalloc.start()
    try:
        found = asyncio.run(run())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == (reply_body.MAX_BYTES, False)
    assert peak < 3 * reply_body.MAX_BYTES
    assert coding == "gzip" or sent < 40


def test_a_body_of_exactly_the_limit_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_body, "MAX_BYTES", 1000)
    (reply,) = calls(replies(whole(bytes(1000))))
    assert (len(reply.body), reply.is_whole) == (1000, True)
    (reply,) = calls(replies(whole(bytes(1001))))
    assert (len(reply.body), reply.is_whole) == (1000, False)


# Connections


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
        whole(b"{}") + b"more",
        whole(b"{}") + whole(b"unasked"),
    ],
)
def test_a_connection_is_not_used_again_where_the_server_closes_it_or_sends_too_much(data: bytes) -> None:
    found, connections = calls_and_connections(replies(data), 3)
    assert [reply.body for reply in found] == [b"{}"] * 3
    assert connections == 3


def test_http_1_0_keeps_a_connection_only_where_it_says_so() -> None:
    data = whole(b"{}", b"Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert calls_and_connections(replies(data), 3)[1] == 1


def test_a_connection_with_an_unasked_reply_is_not_used_again() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(whole(b"%d" % peer.number))
        await asyncio.sleep(0.02)
        await peer.send(whole(b"unasked"))
        await peer.request()

    async def run() -> list[bytes]:
        async with pair(handler) as (_, client):
            first = await client.call("/", b"{}")
            await asyncio.sleep(0.1)
            return [first.body, (await client.call("/", b"{}")).body]

    assert asyncio.run(run()) == [b"1", b"2"]


def test_an_idle_connection_is_closed_before_servers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert direct.IDLE_SECONDS == 4
    monkeypatch.setattr(direct, "IDLE_SECONDS", 0.05)

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


def test_a_get_is_not_repeated_once_its_reply_has_begun() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(whole())
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n")

    async def run() -> int:
        async with pair(handler) as (server, client):
            await client.call("/")
            with pytest.raises(CallError):
                await client.call("/")
            return server.accepted

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\nConte", whole(b"abc")[:-1]])
def test_a_connection_that_ends_within_a_reply_fails(data: bytes) -> None:
    message = error_of(replies_once(data))
    assert message == "the server closed the connection before its reply was complete"


def reset(peer: Peer) -> None:
    """Close with RST."""
    found = peer.writer.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    peer.writer.transport.abort()


def test_a_reset_fails_with_the_error_of_the_system() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        reset(peer)

    assert error_of(handler) == "ConnectionResetError: [Errno 104] Connection reset by peer"


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
        async with aclosing(open_client(f"http://127.0.0.1:{port}", None, Timeouts(5, 5))) as client:
            await client.call("/")

    with pytest.raises(CallError, match="ConnectionRefusedError") as caught:
        asyncio.run(run())
    assert caught.value.errno == 111


def test_a_host_that_does_not_exist_fails() -> None:
    async def run(host: str) -> None:
        async with aclosing(open_client(f"http://{host}", None, Timeouts(5, 5))) as client:
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
            async with aclosing(open_client(address, None, Timeouts(5, 0.1))) as client:
                await client.call("/")

        with pytest.raises(CallError, match=r"^no connection within 0\.1 s$"):
            asyncio.run(run())


def test_a_time_out_of_the_system_is_no_time_out_of_the_call() -> None:
    async def run() -> str:
        one = connection.Connection(lambda _: None, lambda _: None)

        class Silent(asyncio.Transport):
            def writelines(self, list_of_data: object) -> None:
                loop.call_soon(one.connection_lost, TimeoutError(110, "Connection timed out"))

            def is_closing(self) -> bool:
                return False

            def abort(self) -> None:
                pass

        loop = asyncio.get_running_loop()
        one.connection_made(Silent())
        with pytest.raises(CallError) as caught:
            await one.exchange([b""])
        return str(caught.value)

    assert asyncio.run(run()) == "TimeoutError: [Errno 110] Connection timed out"


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
