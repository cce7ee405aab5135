"""A client that calls a server without a proxy: HTTP/1.1 on the transports of asyncio.

It takes less than half of the processor time of aiohttp, which also costs 0.2 s to import.
"""

from __future__ import annotations

import asyncio
import ssl

from sightline.models.http.connection import Connection
from sightline.models.http.interface import CallError, NoAnswerError, Reply, Timeouts, broken, no_connection
from sightline.models.http.request_head import Target

IDLE_SECONDS = 4.0
"""How long an idle connection is kept. Servers close it after 5 s (uvicorn, so vLLM and SGLang)."""


class DirectClient:
    """Calls one server over as many connections as there are calls at a time, and keeps them a while."""

    def __init__(self, target: Target, timeouts: Timeouts) -> None:
        self._target = target
        self._timeouts = timeouts
        self._tls: ssl.SSLContext | None = None
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._is_closed = False

    async def call(self, path: str, body: bytes | None = None, *, total: float | None = None) -> Reply:
        """Make one call, as `HTTPClient.call`."""
        head = self._target.head(path, body)
        seconds = self._timeouts.total if total is None else total
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange([head] if body is None else [head, body])
        except TimeoutError:
            raise NoAnswerError(seconds) from None

    async def aclose(self) -> None:
        """Close all connections and wait until they are closed; calls that are not complete fail."""
        self._is_closed = True
        for connection in list(self._open):
            connection.abort()
        # The event loop closes them in its next one or two steps.
        while self._open:
            await asyncio.sleep(0)

    async def _exchange(self, request: list[bytes]) -> Reply:
        """Send a request over an idle connection, or over a new one.

        The server may close an idle connection just as it is used. A GET is sent again then. A POST is not,
        as with aiohttp: the server may have begun to answer, and the caller decides whether to pay again.
        """
        if (idle := self._take_idle()) is not None:
            try:
                return await self._reply(idle, request)
            except CallError:
                if idle.has_received or len(request) > 1:
                    raise
        return await self._reply(await self._connect(), request)

    async def _reply(self, connection: Connection, request: list[bytes]) -> Reply:
        reply = await connection.exchange(request)
        if connection.can_continue and not self._is_closed:
            connection.rest(IDLE_SECONDS)
            self._idle.append(connection)
        else:
            connection.abort()
        return reply

    def _take_idle(self) -> Connection | None:
        """The connection that was used last: the others can close."""
        while self._idle:
            connection = self._idle.pop()
            connection.wake()
            if connection.can_continue:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        if self._is_closed:
            raise CallError("the client is closed")
        target, loop = self._target, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeouts.connect) as limit:
                _, connection = await loop.create_connection(
                    lambda: Connection(self._open.add, self._forget),
                    target.hostname,
                    target.port,
                    ssl=self._tls_context() if target.is_tls else None,
                    # The IP addresses of a host are tried one after the other: where asyncio tries them at a
                    # time (`happy_eyeballs_delay`), a cancelled call can leave an open socket behind.
                )
        except (OSError, UnicodeError) as error:  # UnicodeError: a part of the name is too long.
            raise (no_connection(self._timeouts.connect) if limit.expired() else broken(error)) from None
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        """Verify certificates and host names."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
