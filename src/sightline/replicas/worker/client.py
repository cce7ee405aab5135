"""Calls a worker: requests as they are, and results as the model in this process would give them."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from sightline.images import BadImage
from sightline.models.chat_request import ChatRequestEncoder
from sightline.models.chat_response import failure_of_status
from sightline.models.http.interface import CallError, Timeouts
from sightline.models.http.opening import open_client
from sightline.models.reply_body import too_large
from sightline.replicas.worker.wire import encode_request, read_reply
from sightline.types import Answer, Failure, Request

CONNECT_SECONDS = 30


class WorkerClient:
    """A connection to one worker."""

    def __init__(self, address: str, model: str, key: str) -> None:
        self._address = address
        self._key = key
        self._host = address.partition("://")[2]
        self._encoder = ChatRequestEncoder(model)

    async def __aenter__(self) -> Self:
        """Open a client."""
        # An answer may take as long as it takes: who waits knows by other means whether the worker lives.
        self._client = open_client(self._address, self._key, Timeouts(None, CONNECT_SECONDS))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        await self._client.aclose()

    async def send(self, request: Request) -> Answer | Failure:
        """Ask for one answer."""
        try:
            body = await encode_request(request, self._encoder)
        except BadImage as error:
            return Failure("permanent", str(error))
        try:
            reply = await self._client.call("/v1/chat/completions", body)
        except CallError as error:
            return Failure("transient", f"{self._host}: {error}")
        if not reply.is_whole:
            return too_large(self._host)
        result = read_reply(reply.body)
        if result is not None:
            return result
        if reply.status == 200:
            return Failure("transient", f"{self._host}: not the reply of a worker")
        return failure_of_status(self._host, reply.status, reply.body, reply.headers.get("retry-after"))
