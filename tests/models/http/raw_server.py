"""A server on bare sockets, whose every byte the test decides."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from sightline.models.http_client import CallError, HTTPClient, Reply, Timeouts

Handler = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One connection, on the side of the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader, self.writer, self.number = reader, writer, number

    async def request(self) -> tuple[bytes, bytes]:
        """The head and the body of the next request."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return head, await self.reader.readexactly(length)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


class RawServer:
    """The server, and how many connections it has had and has."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._tasks: set[asyncio.Task[Any]] = set()
        self.accepted = self.open = 0
        self.address = ""

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls, limit=2**26)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http{'s' if tls else ''}://127.0.0.1:{port}"

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def closed(self) -> None:
        """Wait until no connection is open."""
        async with asyncio.timeout(5):
            while self.open:
                await asyncio.sleep(0.005)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        self.open += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._handler(Peer(reader, writer, self.accepted))
        except asyncio.CancelledError:
            pass
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.transport.abort() if not writer.is_closing() else None


@contextlib.asynccontextmanager
async def raw_server(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """A server that gives each connection to the handler; a connection ends with its handler."""

    async def then_close(peer: Peer) -> None:
        await handler(peer)
        peer.writer.close()

    server = RawServer(then_close)
    await server.start(tls)
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def client_of(
    server: RawServer, key: str | None = None, total: float = 5, connect: float = 5
) -> AsyncIterator[HTTPClient]:
    """A client of the server."""
    async with aclosing(HTTPClient(server.address, key, Timeouts(total, connect))) as client:
        yield client


def replies(data: bytes) -> Handler:
    """Replies to each request with these bytes."""

    async def handler(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(data)

    return handler


def replies_once(data: bytes) -> Handler:
    """Replies to one request with these bytes, and closes the connection."""

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(data)

    return handler


def whole(body: bytes = b"{}", *fields: bytes, status: bytes = b"200 OK") -> bytes:
    """A reply with Content-Length."""
    head = b"".join(field + b"\r\n" for field in fields)
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, head, len(body), body)


def open_files() -> int:
    """How many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


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


def reset(peer: Peer) -> None:
    """Close with RST."""
    found = peer.writer.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    peer.writer.transport.abort()
