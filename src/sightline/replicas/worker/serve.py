"""Runs a worker until it is told to end, or its model cannot answer any more."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from sightline.errors import UserError
from sightline.models.base import Model
from sightline.output import print_line, print_note
from sightline.replicas.gather import Gather
from sightline.replicas.worker.app import WorkerApp
from sightline.replicas.worker.chat_body import ChatReader
from sightline.types import Answer, Failure, Request

BACKLOG = 4096
"""Connections that wait to be accepted: drivers send many requests at the same time."""


class Serving(Struct, frozen=True, kw_only=True):
    """How a worker serves.

    Attributes:
        key_file: The file that has the key, for a message; None if it is not in a file.
    """

    host: str
    port: int
    key: str
    key_file: Path | None = None
    folders: Sequence[Path] = ()
    logs_requests: bool = False


async def serve(model: Model, serving: Serving) -> None:
    """Load a model, and answer requests until SIGTERM or Ctrl-C."""
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
        sys.stdout.flush()
        await asyncio.wait({failed})
        failed.result()


@asynccontextmanager
async def serving_worker(model: Model, serving: Serving) -> AsyncIterator[tuple[str, asyncio.Future[None]]]:
    """Load a model, and answer requests until the context ends.

    The server listens before the model loads, so that no other process gets the port meanwhile.
    """
    worker = WorkerApp(
        ChatReader(model, serving.folders),
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
