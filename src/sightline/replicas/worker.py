"""A worker: it serves a local model over HTTP until it is told to end, or the model cannot answer."""

from __future__ import annotations

import asyncio
import binascii
import hmac
import os
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import pybase64
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import json_digest, writing
from sightline.images import BadImage, inspect_image
from sightline.models.base import Model
from sightline.replicas import worker_client
from sightline.replicas.worker_client import FIELD, RequestField
from sightline.text import flush_lines, print_line, print_note
from sightline.types import Answer, Failure, ImageFile, ImageRef, Message, Part, Request, Text

BACKLOG = 4096
"""Connections that wait to be accepted: drivers send many requests at the same time."""


class Serving(Struct, frozen=True, kw_only=True):
    """How a worker serves; `key_file` is None if the key is not in a file."""

    host: str
    port: int
    key: str
    key_file: Path | None = None
    logs_requests: bool = False


async def serve(model: Model, serving: Serving) -> None:
    ended, loaded = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    ending = asyncio.create_task(ended.wait())
    answering = asyncio.create_task(_serve_until_failed(model, serving, loaded))
    try:
        await asyncio.wait({ending, answering}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ending.cancel()
        answering.cancel()
        await asyncio.wait({answering})
    if not answering.cancelled():
        answering.result()
    elif not loaded.is_set():
        raise KeyboardInterrupt("the model was still loading")


async def _serve_until_failed(model: Model, serving: Serving, loaded: asyncio.Event) -> None:
    async with serving_worker(model, serving) as (address, failed):
        loaded.set()
        if serving.key_file is not None:
            print_note(f"clients need the key that is in the file {serving.key_file}")
        print_line(f"{model.name} answers at {address}/v1")
        flush_lines()
        await asyncio.wait({failed})
        failed.result()


@asynccontextmanager
async def serving_worker(model: Model, serving: Serving) -> AsyncIterator[tuple[str, asyncio.Future[None]]]:
    """Load a model, and answer requests until the context ends.

    The server listens before the model loads, so that no other process gets the port meanwhile.
    """
    worker = WorkerApp(
        ChatReader(model),
        model=model.name,
        identity=model.identity,
        key=serving.key,
        logs_requests=serving.logs_requests,
    )
    async with AsyncExitStack() as listening:
        runner = web.AppRunner(worker.app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        listening.push_async_callback(runner.cleanup)
        host, port = await _listen(runner, serving)
        # Calls end before the model closes.
        async with _answering(model) as answer, listening.pop_all():
            worker.begin(answer)
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}", worker.failed


@asynccontextmanager
async def _answering(model: Model) -> AsyncIterator[Callable[[Request], Awaitable[Answer | Failure]]]:
    """Open a model; single requests are gathered for one that takes many at once."""
    if model.batch_size > 1:
        async with Gather(model) as gather:
            yield gather.answer
        return

    async def one(request: Request) -> Answer | Failure:
        async for _, result in model.answer([request]):
            return result
        return Failure("transient", f"{model.name} gave no answer to this request")

    async with model:
        yield one


async def _listen(runner: web.AppRunner, serving: Serving) -> tuple[str, int]:
    """Listen; returns address and port. Raises UserError where that is not possible."""
    bound = socket.socket(socket.AF_INET6 if ":" in serving.host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((serving.host, serving.port))
        # Two sockets can have the port until one of them listens.
        await web.SockSite(runner, bound, backlog=BACKLOG).start()
    except socket.gaierror as error:
        bound.close()
        raise UserError(
            f"cannot listen on {serving.host}: {error.strerror}",
            expected="an address or a name of this computer, such as 127.0.0.1",
        ) from None
    except OSError as error:
        bound.close()
        raise UserError(
            f"cannot listen on {serving.host}:{serving.port}: {os.strerror(error.errno or 0)}",
            expected="an address of this computer and a free port; --port 0 chooses one",
        ) from None
    host, port = bound.getsockname()[:2]
    return host, port


# -- The routes of a worker: health, models, chat completions; every other path and key is refused

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
        self._answer = answer

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse a call without the key, and give every error in the protocol's form."""
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if request.path != "/health" and not hmac.compare_digest(given, self._authorization):
            return _reply(401, worker_client.error("the API key is missing or wrong", "authentication_error"))
        if request.path != "/health" and self._answer is None:
            return _reply(503, worker_client.error("the model is still loading", "server_error"))
        try:
            return await handler(request)
        except UnknownModelError as error:
            return _reply(
                404, worker_client.error(str(error), "invalid_request_error", code="model_not_found")
            )
        except BadRequestError as error:
            return _reply(400, worker_client.error(str(error), "invalid_request_error"))
        except web.HTTPRequestEntityTooLarge:
            message = f"the request is larger than {MAX_BODY:,} bytes"
            return _reply(413, worker_client.error(message, "invalid_request_error"))
        except web.HTTPException as error:
            return _reply(error.status, worker_client.error(error.reason, "invalid_request_error"))
        except (UserError, EnvironmentFailedError) as error:
            if not self.failed.done():
                self.failed.set_exception(error)
            return _reply(500, worker_client.error(str(error), "server_error"))

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
            return _reply(200, worker_client.completion(result, self._model, asked.key, int(time.time())))
        kind = "server_error" if result.kind == "transient" else "invalid_request_error"
        return _reply(_STATUS[result.kind], worker_client.error(result.message, kind, result))


def _without_paths(failure: Failure, request: Request) -> Failure:
    """A failure that calls the images by their number: their files are the worker's own."""
    message = failure.message
    for number, path in enumerate(request.images, 1):
        message = message.replace(path, f"image {number}")
    return replace(failure, message=message)


def _reply(status: int, body: object) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


# -- Reads chat completions requests: from a body to a request for a local model, with its images in files

IGNORED = ("user", "metadata", "store")
"""Fields that do not change the answer."""

SINGLE = {"stream": False, "n": 1}
"""Fields of the protocol of which a worker has one value."""


class BadRequestError(Exception):
    """A request that no model can answer; the text says why."""


class UnknownModelError(BadRequestError):
    """A request for a model that the worker does not serve."""


class _TextPart(Struct, tag="text", forbid_unknown_fields=True):
    text: str


class _Url(Struct):
    url: str


class _ImagePart(Struct, tag="image_url", forbid_unknown_fields=True):
    image_url: _Url


class _ChatMessage(Struct):
    role: Literal["system", "user", "assistant"]
    content: str | list[_TextPart | _ImagePart]


class ChatReader:
    """Reads the requests of one model."""

    def __init__(self, model: Model) -> None:
        self._name = model.name
        self._effective = model.effective

    @contextmanager
    def reading(self, raw: bytes) -> Iterator[Request]:
        try:
            body = msgspec.json.decode(raw, type=dict[str, Any])
            field = msgspec.convert(body.pop(FIELD, {}), RequestField)
            messages = msgspec.convert(body.get("messages"), list[_ChatMessage])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequestError(f"the body is no chat completions request: {error}") from None
        if not messages:
            raise BadRequestError("messages is empty; expected one message or more")
        # As with vLLM, a request need not name the model.
        if (name := body.get("model")) not in (None, "", self._name):
            raise UnknownModelError(f"The model `{name}` does not exist; this worker serves `{self._name}`")
        sampling = self._sampling(body)
        with ExitStack() as stack:
            with writing("the folder of temporary files (TMPDIR)"):
                folder = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="sightline-images-", ignore_cleanup_errors=True)
                )
            images: dict[str, ImageFile] = {}
            yield Request(
                field.key or json_digest({name: body[name] for name in body if name not in IGNORED}),
                tuple(self._message(message, Path(folder), images) for message in messages),
                sampling,
                images,
                draw=field.draw,
                choices=field.choices,
            )

    def _sampling(self, body: Mapping[str, Any]) -> dict[str, Any]:
        for name, value in SINGLE.items():
            if body.get(name, value) not in (value, None):
                raise BadRequestError(f"{name}={body[name]} is not supported, only {name}={value}")
        known = {"model", "messages", *IGNORED, *SINGLE}
        options = {name: value for name, value in body.items() if name not in known and value is not None}
        if "max_completion_tokens" in options:
            options.setdefault("max_tokens", options.pop("max_completion_tokens"))
        try:
            return self._effective(options)
        except UserError as error:
            # Clients of the protocol do not have the options of the command line.
            raise BadRequestError(str(error).removeprefix("--gen ")) from None

    def _message(self, message: _ChatMessage, folder: Path, images: dict[str, ImageFile]) -> Message:
        if isinstance(message.content, str):
            return Message(message.role, (Text(message.content),))
        parts: list[Part] = []
        for part in message.content:
            if isinstance(part, _TextPart):
                parts.append(Text(part.text))
            else:
                image = self._image(part.image_url.url, folder, len(images) + 1)
                images[image.path] = _inspected(image, len(images) + 1)
                parts.append(image)
        return Message(message.role, tuple(parts))

    def _image(self, url: str, folder: Path, number: int) -> ImageRef:
        head, comma, data = url.partition(",")
        if not comma or not head.startswith("data:") or not head.endswith(";base64"):
            raise BadRequestError(f"image {number}: expected a data URL in base64")
        try:
            content = pybase64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise BadRequestError(f"image {number}: not base64") from None
        received = folder / str(number)
        with writing(received):
            received.write_bytes(content)
        return ImageRef(str(received))


def _inspected(image: ImageRef, number: int) -> ImageFile:
    try:
        return inspect_image(image, {})
    except BadImage as error:
        raise BadRequestError(str(error).replace(image.path, f"image {number}")) from None


# -- Gathers single requests into windows: a local model answers many at once faster than one by one

BURST_SECONDS = 0.005
"""How long a window waits for the requests that arrive together with its first one."""

_Waiting = tuple[Request, asyncio.Future[Answer | Failure]]


class Gather:
    """Answers requests one by one, and asks its model for all that wait in one call.

    While the model computes a window, the next one fills. Belongs to one event loop.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._waiting: list[_Waiting] = []
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._model.__aenter__()
        windows = self._model.parallel or 1
        self._workers = [asyncio.create_task(self._work()) for _ in range(windows)]
        return self

    async def __aexit__(self, *error: Any) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.wait(self._workers)
        for _, result in self._waiting:
            result.cancel()
        await self._model.__aexit__(*error)

    async def answer(self, request: Request) -> Answer | Failure:
        result: asyncio.Future[Answer | Failure] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, result))
        self._arrived.set()
        return await result

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(BURST_SECONDS)
            size = self._model.batch_size
            window, self._waiting = self._waiting[:size], self._waiting[size:]
            if not self._waiting:
                self._arrived.clear()
            # Nobody waits for a request that was cancelled meanwhile.
            if window := [entry for entry in window if not entry[1].done()]:
                await self._answer(window)

    async def _answer(self, window: list[_Waiting]) -> None:
        """Answer a window; an error of the model reaches every request of it."""
        try:
            async for index, answer in self._model.answer([request for request, _ in window]):
                _settle(window[index][1], answer)
            for _, result in window:
                _settle(result, Failure("transient", f"{self._model.name} gave no answer to this request"))
        except asyncio.CancelledError:
            for _, result in window:
                result.cancel()
            raise
        except Exception as error:
            for _, result in window:
                if not result.done():
                    result.set_exception(error)


def _settle(result: asyncio.Future[Answer | Failure], answer: Answer | Failure) -> None:
    if not result.done():
        result.set_result(answer)
