"""What the direct client sends."""

from __future__ import annotations

import asyncio

import pytest
from tests.models.http.raw_server import (
    Peer,
    calls,
    client_of,
    pair,
    raw_server,
    whole,
)

from sightline.errors import UserError
from sightline.models.http_client import HTTPClient, Timeouts

KEY = "sk-planted/0123+456=="


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
        "Accept-Encoding: identity",
        "User-Agent: sightline/0.1.0",
        f"Authorization: Bearer {KEY}",
        "Content-Type: application/json",
        "Content-Length: 8",
    }


def test_a_get_has_no_body_and_without_a_key_no_authorization() -> None:
    lines = requests_of(body=None).decode().split("\r\n")
    assert lines[0] == "GET /chat/completions HTTP/1.1"
    assert {line.partition(":")[0] for line in lines[1:-2]} == {
        "Host",
        "Accept",
        "Accept-Encoding",
        "User-Agent",
    }


@pytest.mark.parametrize("key", ["a\r\nX: y", "a\nb", "a\0b", "a\x7f"])
def test_a_key_with_control_characters_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(UserError, match="the API key for h contains a control character") as caught:
        HTTPClient("http://h/v1", key, Timeouts(1, 1))
    assert "X: y" not in str(caught.value)


def test_an_address_with_control_characters_is_refused() -> None:
    with pytest.raises(UserError, match="control character"):
        HTTPClient("http://h/a\r\nX: y", None, Timeouts(1, 1))


def test_other_characters_of_a_path_are_encoded() -> None:
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.send(whole())

    async def run() -> None:
        async with pair(handler) as (_, client):
            await client.call("/a b/ü/%20")

    asyncio.run(run())
    assert heads[0].startswith(b"GET /a%20b/%C3%BC/%20 HTTP/1.1\r\n")


def test_a_large_body_arrives_whole() -> None:
    body = bytes(range(256)) * 2**15
    found: list[bytes] = []

    async def handler(peer: Peer) -> None:
        await asyncio.sleep(0.05)
        found.append((await peer.request())[1])
        await peer.send(whole())

    (reply,) = calls(handler, body=body)
    assert (reply.status, found) == (200, [body])
