"""One connection to a server, which carries one call at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from sightline.models.http.interface import CallError, Reply, broken
from sightline.models.http.reply_reader import ReplyReader


class Connection(asyncio.Protocol):
    """One connection. What ends a call early closes it, so that no call reads the reply of another."""

    def __init__(self, opened: Callable[[Connection], None], lost: Callable[[Connection], None]) -> None:
        self._opened = opened
        self._lost = lost
        self._reader = ReplyReader()
        self._waiter: asyncio.Future[Reply] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self.has_received = False
        """Whether the server has sent something since the last call began."""

    @property
    def can_continue(self) -> bool:
        """Whether another call may follow: not if the server replied before the whole body was sent."""
        return (
            self._reader.can_continue
            and not self._transport.is_closing()
            and self._transport.get_write_buffer_size() == 0
        )

    async def exchange(self, request: Sequence[bytes]) -> Reply:
        """Send a request and wait for its reply."""
        if self._transport.is_closing():
            raise CallError("the server closed the connection")
        self.has_received = False
        self._reader.start()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            self._transport.writelines(request)
            return await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None

    def rest(self, seconds: float) -> None:
        """Stay open for another call."""
        self._idle_timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def wake(self) -> None:
        """End the rest."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def abort(self) -> None:
        """Close the connection without sending what is left."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        """Read a part of the reply."""
        self.has_received = True
        if self._waiter is None or self._waiter.done():
            # No call waits for this: it cannot be told what it belongs to.
            self.abort()
            return
        try:
            self._reader.feed(data)
        except CallError as error:
            self._waiter.set_exception(error)
            self.abort()
            return
        if self._reader.reply is not None:
            self._waiter.set_result(self._reader.reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the call, if there is one."""
        self.wake()
        if self._waiter is not None and not self._waiter.done():
            if exc is None:
                self._reader.end()
            if self._reader.reply is not None:
                self._waiter.set_result(self._reader.reply)
            else:
                closed = CallError("the server closed the connection before its reply was complete")
                self._waiter.set_exception(closed if exc is None else broken(exc))
        self._reader.close()
        self._lost(self)
