"""Which proxy is used, and calls through a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.models.http.raw_server import Peer, RawServer, calls, raw_server, replies, replies_once, whole

from sightline.errors import UserError
from sightline.models import http_client
from sightline.models.http_client import (
    CallError,
    HTTPClient,
    NoAnswerError,
    Reply,
    Timeouts,
    environment_proxy,
)
from sightline.models.openai import Endpoint, EndpointArgs, OpenAICompatible
from sightline.types import Answer, Failure, Request, user

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("address", "environment", "proxy"),
    [
        ("http://h/v1", {}, None),
        ("http://h/v1", {"http_proxy": "http://p:1"}, "http://p:1"),
        ("http://h/v1", {"http_proxy": "p:1"}, "http://p:1"),
        ("http://h/v1", {"https_proxy": "http://p:1"}, None),
        ("https://h/v1", {"https_proxy": "http://p:1"}, "http://p:1"),
        ("https://h/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://h/v1", {"https_proxy": "http://p:1", "no_proxy": "h"}, None),
        ("https://a.h/v1", {"https_proxy": "http://p:1", "no_proxy": ".h"}, None),
        ("https://h/v1", {"https_proxy": "http://p:1", "no_proxy": "other"}, "http://p:1"),
        ("https://h/v1", {"https_proxy": ""}, None),
    ],
)
def test_the_environment_decides_for_each_scheme_and_host_whether_a_proxy_is_used(
    address: str, environment: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert environment_proxy(address) == proxy


def test_a_client_uses_no_proxy_of_the_environment_and_no_key_of_netrc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would see the key and the images; a key of ~/.netrc is not for this server."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password planted\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.send(whole())

    assert calls(handler)[0].status == 200
    assert b"authorization" not in heads[0].lower()


def test_a_proxy_of_another_kind_is_refused_without_its_key() -> None:
    with pytest.raises(UserError, match="an HTTP proxy") as caught:
        HTTPClient("http://h/v1", None, Timeouts(1, 1), proxy="socks5://me:planted@p:1")
    assert "planted" not in str(caught.value)


def through(
    handler: Callable[[Peer], Awaitable[None]],
    use: Callable[[HTTPClient], Awaitable[Any]],
    total: float = 5,
    key: str | None = None,
) -> Any:
    """What a use of a client gives whose proxy is this server."""

    async def run() -> Any:
        async with raw_server(handler) as proxy:
            client = HTTPClient("http://h.invalid/v1", key, Timeouts(total, 5), proxy=proxy.address)
            async with aclosing(client):
                return await use(client)

    return asyncio.run(run())


def test_the_proxy_is_asked_for_the_url_with_the_key() -> None:
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            heads.append(head + body)
            await peer.send(whole(b"abc", b"RETRY-After: 3", status=b"500 Busy"))

    async def use(client: HTTPClient) -> list[Reply]:
        return [await client.call("/chat/completions", b'{"a": 1}'), await client.call("/models")]

    found = through(handler, use, key="the-key")
    for reply in found:
        assert (reply.status, reply.body, reply.is_whole) == (500, b"abc", True)
        assert reply.headers["retry-after"] == "3"
    assert heads[0].startswith(b"POST http://h.invalid/v1/chat/completions HTTP/1.1\r\n")
    assert heads[0].endswith(b'\r\n\r\n{"a": 1}')
    assert heads[1].startswith(b"GET http://h.invalid/v1/models HTTP/1.1\r\n")
    for head in heads:
        assert b"Authorization: Bearer the-key\r\n" in head
        assert b"User-Agent: sightline/" in head
    assert b"Content-Type: application/json\r\n" in heads[0]


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> bytes:
        async with raw_server(replies(whole(b"by the proxy"))) as proxy:
            monkeypatch.setenv("http_proxy", proxy.address)
            endpoint = Endpoint(address="http://h.invalid/v1", model="m", name="n", identity="i")
            client = OpenAICompatible(endpoint, EndpointArgs()).new_client()
            async with aclosing(client):
                return (await client.call("/models")).body

    assert asyncio.run(run()) == b"by the proxy"


def test_the_key_of_a_proxy_goes_to_the_proxy() -> None:
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.send(whole())

    async def run() -> None:
        async with raw_server(handler) as proxy:
            address = proxy.address.replace("//", "//me:secret@")
            async with aclosing(HTTPClient("http://h.invalid", "k", Timeouts(5, 5), proxy=address)) as client:
                await client.call("/models")

    asyncio.run(run())
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in heads[0]
    assert b"Authorization: Bearer k\r\n" in heads[0]


def test_redirects_are_not_followed_through_a_proxy() -> None:
    async def use(client: HTTPClient) -> int:
        return (await client.call("/models")).status

    assert through(replies(whole(b"", b"Location: http://other.invalid/", status=b"307 Away")), use) == 307


def test_a_proxy_that_does_not_answer_and_one_that_hangs_up_fail_as_servers_do() -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(5)

    async def use(client: HTTPClient) -> Reply:
        return await client.call("/models")

    with pytest.raises(NoAnswerError, match=r"^no answer within 0\.1 s$"):
        through(silent, use, total=0.1)
    with pytest.raises(CallError, match="the server closed the connection"):
        through(replies_once(b""), use)


def test_the_limit_of_bytes_holds_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", 1000)

    async def use(client: HTTPClient) -> Reply:
        return await client.call("/models")

    reply = through(replies(whole(bytes(5000))), use)
    assert (len(reply.body), reply.is_whole) == (1000, False)


def test_a_server_is_not_called_past_its_proxy() -> None:
    async def run(server: RawServer) -> None:
        client = HTTPClient(server.address, "key", Timeouts(5, 5), proxy="http://127.0.0.1:9")
        async with aclosing(client):
            await client.call("/models")

    async def both() -> int:
        async with raw_server(replies(whole())) as server:
            with pytest.raises(CallError, match="no connection to the proxy"):
                await run(server)
            return server.accepted

    assert asyncio.run(both()) == 0


def test_a_model_behind_a_proxy_is_asked_through_it_alone() -> None:
    """Nothing looks for the server itself, which this machine may not reach."""
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        while True:
            heads.append((await peer.request())[0].partition(b"\r\n")[0])
            await peer.send(whole(b'{"choices": [{"message": {"content": "yes"}}]}'))

    async def run() -> list[Answer | Failure]:
        async with raw_server(handler) as proxy:
            endpoint = Endpoint(
                address="http://h.invalid/v1", model="m", name="n", identity="i", key="k", proxy=proxy.address
            )
            async with OpenAICompatible(endpoint, EndpointArgs()) as model:
                request = Request("key", (user("Is it day?"),), {}, {}, 0)
                return [result async for _, result in model.answer([request])]

    (answer,) = asyncio.run(run())
    assert isinstance(answer, Answer)
    assert answer.text == "yes"
    assert heads == [b"POST http://h.invalid/v1/chat/completions HTTP/1.1"]
