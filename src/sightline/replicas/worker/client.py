"""Calls a worker: requests as they are, and results as the model in this process would give them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import aiohttp

from sightline.images import BadImage
from sightline.models.chat_request import ChatRequestEncoder
from sightline.models.chat_response import failure_of_status
from sightline.models.reply_body import read_body, too_large
from sightline.replicas.worker.wire import encode_request, read_reply
from sightline.types import Answer, Failure, Request

CONNECT_SECONDS = 30


class WorkerClient:
    """A connection to one worker."""

    def __init__(self, address: str, model: str, key: str) -> None:
        """Open nothing yet.

        Args:
            address: The worker, such as `http://host:8000`.
            model: The model's name.
            key: The worker's key.
        """
        self._url = f"{address}/v1/chat/completions"
        self._host = address.partition("://")[2]
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._encoder = ChatRequestEncoder(model)

    async def __aenter__(self) -> Self:
        """Open a session."""
        # An answer may take as long as it takes: who waits knows by other means whether the worker lives.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        async with AsyncExitStack() as stack:
            self._session = await stack.enter_async_context(
                aiohttp.ClientSession(
                    headers=self._headers, timeout=timeout, connector=aiohttp.TCPConnector(limit=0)
                )
            )
            self._opened = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        await self._opened.aclose()

    async def send(self, request: Request) -> Answer | Failure:
        """Ask for one answer.

        Args:
            request: The request.

        Returns:
            The answer, or the failure.
        """
        try:
            body = await encode_request(request, self._encoder)
        except BadImage as error:
            return Failure("permanent", str(error))
        try:
            async with self._session.post(self._url, data=body) as reply:
                raw, is_whole = await read_body(reply)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Failure("transient", f"{self._host}: {type(error).__name__}: {error}")
        if not is_whole:
            return too_large(self._host)
        result = read_reply(raw)
        if result is not None:
            return result
        if reply.status == 200:
            return Failure("transient", f"{self._host}: not the reply of a worker")
        return failure_of_status(self._host, reply.status, raw, reply.headers.get("Retry-After"))
