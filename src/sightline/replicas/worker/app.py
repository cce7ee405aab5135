"""The routes of a worker: health, models, chat completions; every other path and key is refused."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web
from msgspec.structs import replace

from sightline.errors import EnvironmentFailedError, UserError
from sightline.output import print_note
from sightline.replicas.worker import wire
from sightline.replicas.worker.chat_body import BadRequestError, ChatReader, UnknownModelError
from sightline.types import Answer, Failure, Request

MAX_BODY = 256 * 1024 * 1024
"""The most bytes of a request: three images of the largest size in base64."""

_STATUS = {"permanent": 400, "blocked": 400, "transient": 503}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Answers = Callable[[Request], Awaitable[Answer | Failure]]


class WorkerApp:
    """Answers requests for one model."""

    def __init__(
        self,
        reader: ChatReader,
        *,
        model: str,
        identity: str,
        key: str,
        logs_requests: bool = False,
    ) -> None:
        self._answer: _Answers | None = None
        self._reader = reader
        self._model = model
        self._identity = identity
        self._authorization = f"Bearer {key}".encode()
        self._logs_requests = logs_requests
        self._created = int(time.time())
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises what ends the worker: the model cannot answer any more."""
        self.app = web.Application(client_max_size=MAX_BODY, middlewares=[self._guard])
        self.app.router.add_get("/health", self._health)
        self.app.router.add_get("/v1/models", self._models)
        self.app.router.add_post("/v1/chat/completions", self._completions)

    def begin(self, answer: _Answers) -> None:
        """Answer requests from now on."""
        self._answer = answer

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse a call without the key, and give every error in the protocol's form."""
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if request.path != "/health" and not hmac.compare_digest(given, self._authorization):
            return _reply(401, wire.error("the API key is missing or wrong", "authentication_error"))
        if request.path != "/health" and self._answer is None:
            return _reply(503, wire.error("the model is still loading", "server_error"))
        try:
            return await handler(request)
        except UnknownModelError as error:
            return _reply(404, wire.error(str(error), "invalid_request_error", code="model_not_found"))
        except BadRequestError as error:
            return _reply(400, wire.error(str(error), "invalid_request_error"))
        except web.HTTPRequestEntityTooLarge:
            message = f"the request is larger than {MAX_BODY:,} bytes"
            return _reply(413, wire.error(message, "invalid_request_error"))
        except web.HTTPException as error:
            return _reply(error.status, wire.error(error.reason, "invalid_request_error"))
        except (UserError, EnvironmentFailedError) as error:
            if not self.failed.done():
                self.failed.set_exception(error)
            return _reply(500, wire.error(str(error), "server_error"))

    async def _health(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=500 if self.failed.done() else 503 if self._answer is None else 200)

    async def _models(self, _: web.Request) -> web.StreamResponse:
        entry = {
            "id": self._model,
            "object": "model",
            "created": self._created,
            "owned_by": "sightline",
            "root": self._identity,
        }
        return _reply(200, {"object": "list", "data": [entry]})

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        assert self._answer is not None
        raw = await request.read()
        reading = self._reader.reading(raw)
        asked = await asyncio.to_thread(reading.__enter__)
        try:
            result = await self._answer(asked)
        finally:
            reading.__exit__(None, None, None)
        if isinstance(result, Failure):
            result = _without_paths(result, asked)
        if self._logs_requests:
            print_note(f"{asked.key} {'answer' if isinstance(result, Answer) else result.kind}")
        if isinstance(result, Answer):
            return _reply(200, wire.completion(result, self._model, asked.key, int(time.time())))
        kind = "server_error" if result.kind == "transient" else "invalid_request_error"
        return _reply(_STATUS[result.kind], wire.error(result.message, kind, result))


def _without_paths(failure: Failure, request: Request) -> Failure:
    """A failure that calls the images by their number: their files are the worker's own."""
    message = failure.message
    for number, path in enumerate(request.images, 1):
        message = message.replace(path, f"image {number}")
    return replace(failure, message=message)


def _reply(status: int, body: object) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
