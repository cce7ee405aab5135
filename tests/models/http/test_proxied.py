"""Which client calls a server, and calls through a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from tests.models.http.raw_server import Peer, RawServer, raw_server, replies, replies_once, whole

from sightline.models import chat
from sightline.models.http_client import (
    CallError,
    DirectClient,
    HTTPClient,
    NoAnswerError,
    ProxiedClient,
    Reply,
    Timeouts,
    open_client,
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
    ("address", "environment", "kind"),
    [
        ("http://h/v1", {}, DirectClient),
        ("https://h/v1", {}, DirectClient),
        ("http://h/v1", {"http_proxy": "http://p:1"}, ProxiedClient),
        ("http://h/v1", {"https_proxy": "http://p:1"}, DirectClient),
        ("https://h/v1", {"https_proxy": "http://p:1"}, ProxiedClient),
        ("https://h/v1", {"HTTPS_PROXY": "http://p:1"}, ProxiedClient),
        ("https://h/v1", {"https_proxy": "http://p:1", "no_proxy": "h"}, DirectClient),
        ("https://a.h/v1", {"https_proxy": "http://p:1", "no_proxy": ".h"}, DirectClient),
        ("https://h/v1", {"https_proxy": "http://p:1", "no_proxy": "other"}, ProxiedClient),
        ("https://h/v1", {"https_proxy": ""}, DirectClient),
    ],
)
def test_the_environment_decides_for_each_scheme_and_host_whether_a_proxy_is_used(
    address: str, environment: dict[str, str], kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def run() -> None:
        async with aclosing(open_client(address, None, Timeouts(1, 1), uses_environment_proxy=True)) as one:
            assert isinstance(one, kind)
        async with aclosing(open_client(address, None, Timeouts(1, 1))) as other:
            assert isinstance(other, DirectClient)

    asyncio.run(run())


def through(
    handler: Callable[[Peer], Awaitable[None]],
    use: Callable[[HTTPClient], Awaitable[Any]],
    total: float = 5,
    key: str | None = None,
) -> Any:
    """What a use of a client gives whose proxy is this server."""

    async def run() -> Any:
        async with raw_server(handler) as proxy:
            client = open_client("http://h.invalid/v1", key, Timeouts(total, 5), proxy=proxy.address)
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
            client = open_client("http://h.invalid/v1", None, Timeouts(5, 5), uses_environment_proxy=True)
            async with aclosing(client):
                return (await client.call("/models")).body

    assert asyncio.run(run()) == b"by the proxy"


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
    with pytest.raises(CallError, match="ServerDisconnectedError"):
        through(replies_once(b""), use)


def test_the_limit_of_bytes_holds_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "MAX_BYTES", 1000)

    async def use(client: HTTPClient) -> Reply:
        return await client.call("/models")

    reply = through(replies(whole(bytes(5000))), use)
    assert (len(reply.body), reply.is_whole) == (1000, False)


def test_a_server_is_not_called_past_its_proxy() -> None:
    async def run(server: RawServer) -> None:
        client = open_client(server.address, "key", Timeouts(5, 5), proxy="http://127.0.0.1:9")
        async with aclosing(client):
            await client.call("/models")

    async def both() -> int:
        async with raw_server(replies(whole())) as server:
            with pytest.raises(CallError, match="ClientProxyConnectionError"):
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
