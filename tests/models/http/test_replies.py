"""Replies to the direct client that keep to HTTP, and replies that do not."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import pytest
from tests.models.http.raw_server import (
    Peer,
    calls,
    calls_and_connections,
    error_of,
    pair,
    replies,
    replies_once,
    whole,
)

from sightline.models import http_client


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
    assert error_of(replies(data)).startswith("the reply cannot be read: ")


@pytest.mark.parametrize("head", [b"X: y", b"X", b"X: y\r\n" * 50])
def test_headers_without_end_fail_at_the_limit(head: bytes) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n" + head)
        while True:
            await peer.send(head if b"\n" in head else bytes([head[-1]]) * 1000)

    assert "the reply cannot be read" in error_of(handler)


# Compressed replies, which nobody asked for


def raw_deflate(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(body) + stream.flush()


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (b"gzip", gzip.compress(b"abc" * 999, mtime=0)),
        (b"deflate", zlib.compress(b"abc" * 999)),
        (b"deflate", raw_deflate(b"abc" * 999)),
        (b"identity", b"abc" * 999),
    ],
)
def test_a_reply_that_is_compressed_nevertheless_is_decompressed(coding: bytes, data: bytes) -> None:
    (reply,) = calls(replies(whole(data, b"Content-Encoding: " + coding)))
    assert reply.body == b"abc" * 999


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
def test_a_compressed_reply_that_cannot_be_read_fails_with_the_reason(coding: bytes) -> None:
    reason = error_of(replies(whole(b"\xff\xff", b"Content-Encoding: " + coding)))
    assert reason == f"the reply cannot be read: Can not decode content-encoding: {coding.decode()}"


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
    assert found == (http_client.MAX_BYTES, False)
    assert peak < 3 * http_client.MAX_BYTES
    assert coding == "gzip" or sent < 40


def test_a_body_of_exactly_the_limit_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", 1000)
    (reply,) = calls(replies(whole(bytes(1000))))
    assert (len(reply.body), reply.is_whole) == (1000, True)
    (reply,) = calls(replies(whole(bytes(1001))))
    assert (len(reply.body), reply.is_whole) == (1000, False)
