"""Runs a worker until it is told to end, or its model cannot answer any more."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from msgspec import Struct

from sightline.errors import UserError
from sightline.models.base import Model
from sightline.output import print_line
from sightline.replicas.gather import Gather
from sightline.replicas.worker.app import WorkerApp
from sightline.replicas.worker.chat_body import ChatReader
from sightline.types import Answer, Failure, Request

BACKLOG = 4096
"""Connections that wait to be accepted: drivers send many requests at the same time."""


class Serving(Struct, frozen=True, kw_only=True):
    """How a worker serves.

    Attributes:
        host: The address that it listens on.
        port: The port; 0 for a free one.
        key: The key of clients.
        folders: The folders of which file:// URLs may name images.
        logs_requests: Whether the key of each answered request is printed.
    """

    host: str
    port: int
    key: str
    folders: Sequence[Path] = ()
    logs_requests: bool = False


async def serve(model: Model, serving: Serving) -> None:
    """Load a model, and answer requests until SIGTERM or Ctrl-C.

    Args:
        model: The model.
        serving: How to serve.

    Raises:
        UserError: The model cannot be used, or the port is in use.
        EnvironmentFailedError: The model cannot answer any more.
    """
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with serving_worker(model, serving) as (address, failed):
        print_line(f"{model.name} answers at {address}/v1")
        sys.stdout.flush()
        ending = asyncio.create_task(ended.wait())
        either: set[asyncio.Future[Any]] = {ending, failed}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
        if failed.done():
            failed.result()


@asynccontextmanager
async def serving_worker(model: Model, serving: Serving) -> AsyncIterator[tuple[str, asyncio.Future[None]]]:
    """Load a model, and answer requests until the context ends.

    Args:
        model: The model.
        serving: How to serve.

    Yields:
        The address, such as `http://127.0.0.1:8000`, and a future that raises what ends the worker: the model
        cannot answer any more.

    Raises:
        UserError: The model cannot be used, or the port is in use.
    """
    # The port is reserved before the model loads, and accepts nothing until it has.
    with _bound(serving) as bound:
        async with _answering(model) as answer:
            reader = ChatReader(model.effective, serving.folders)
            worker = WorkerApp(
                answer,
                reader,
                model=model.name,
                identity=model.identity,
                key=serving.key,
                logs_requests=serving.logs_requests,
            )
            runner = web.AppRunner(
                worker.app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0
            )
            await runner.setup()
            try:
                await web.SockSite(runner, bound, backlog=BACKLOG).start()
                host, port = bound.getsockname()[:2]
                yield f"http://{f'[{host}]' if ':' in host else host}:{port}", worker.failed
            finally:
                await runner.cleanup()


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


def _bound(serving: Serving) -> socket.socket:
    """Reserve the port. Raises UserError where that is not possible."""
    bound = socket.socket(socket.AF_INET6 if ":" in serving.host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((serving.host, serving.port))
    except OSError as error:
        bound.close()
        raise UserError(
            f"cannot listen on {serving.host}:{serving.port}: {error.strerror}",
            expected="an address of this computer and a free port; --port 0 chooses one",
        ) from None
    return bound
