"""A replica behind an HTTP address: its calls end as soon as it is known to be lost."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from sightline.models.http.interface import CallError, Timeouts
from sightline.models.http.opening import open_client
from sightline.replicas.base import ReplicaLostError
from sightline.types import Answer, Failure, Request

HEALTH_SECONDS = 10.0
"""How long a server may take to say that it lives."""


class RemoteReplica:
    """A replica that a server answers for.

    A broken call of a server that still lives is a transient failure, which the engine asks again; otherwise
    the replica is lost. Belongs to one event loop.
    """

    def __init__(
        self, name: str, address: str, send: Callable[[Request], Awaitable[Answer | Failure]]
    ) -> None:
        self.name = name
        self._address = address
        self._send = send
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(self, request: Request) -> Answer | Failure:
        """Answer one request. Raises ReplicaLostError if the server has ended."""
        if self._lost.done():
            raise ReplicaLostError(self._lost.result(), received=False)
        call = asyncio.ensure_future(self._send(request))
        try:
            either: set[asyncio.Future[Any]] = {call, self._lost}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                result = call.result()
                if isinstance(result, Answer) or result.kind != "transient" or await self._lives():
                    return result
                self.lose(result.message)
        finally:
            call.cancel()
        raise ReplicaLostError(self._lost.result())

    @property
    def is_lost(self) -> bool:
        """Whether it answers no more."""
        return self._lost.done()

    def lose(self, reason: str) -> None:
        """End all calls: the server has ended, whether or not its connections say so."""
        if not self._lost.done():
            self._lost.set_result(reason)

    async def _lives(self) -> bool:
        return not self._lost.done() and await is_healthy(self._address)


async def is_healthy(address: str) -> bool:
    """Ask a server whether it is ready."""
    try:
        async with aclosing(open_client(address, None, Timeouts(HEALTH_SECONDS, HEALTH_SECONDS))) as client:
            return (await client.call("/health")).status == 200
    except CallError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
