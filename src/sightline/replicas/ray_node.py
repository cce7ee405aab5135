"""A model on a node of Ray: opened once, and served to the driver by HTTP as on other places."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from msgspec import Struct

from sightline import __version__
from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.registry import ModelOptions, resolve


class ModelCopy(Struct, frozen=True):
    """The model that a node opens, and the key of its server."""

    spec: str
    args: Mapping[str, Any]
    identity: str
    folder: str
    key: str
    version: str = __version__


class ServedCopy(Struct, frozen=True):
    """An open model and its server, which end with the process."""

    address: str
    failed: asyncio.Future[None]
    opened: AsyncExitStack

    async def until_failed(self) -> tuple[str, str]:
        """Wait until the model can answer no request: 'wrong' or 'failed', and the reason."""
        try:
            await self.failed
        except UserError as error:
            return "wrong", str(error)
        except EnvironmentFailedError as error:
            return "failed", str(error)
        raise AssertionError


async def serve_model(payload: bytes, host: str) -> tuple[str, Any]:
    """Open a model and serve it: 'done' and the ServedCopy, or 'wrong' or 'failed' and the reason."""
    try:
        return "done", await _served(pickle.loads(payload), host)
    except UserError as error:
        return "wrong", str(error)
    except EnvironmentFailedError as error:
        return "failed", str(error)


async def _served(copy: ModelCopy, host: str) -> ServedCopy:
    # The driver imports this module too, and needs no server.
    from sightline.replicas.worker import Serving, serving_worker

    if copy.version != __version__:
        raise UserError("another version of Sightline", found=__version__, expected=copy.version)
    # Where this machine has the folder of the command, a relative path of the model means the same.
    if os.path.isdir(copy.folder):
        os.chdir(copy.folder)
    [model] = resolve(copy.spec, ModelOptions(args=copy.args))
    if model.identity != copy.identity:
        raise UserError(f"{copy.spec} is another model there", found=model.identity, expected=copy.identity)
    opened = AsyncExitStack()
    serving = serving_worker(model, Serving(host=host, port=0, key=copy.key))
    address, failed = await opened.enter_async_context(serving)
    return ServedCopy(address, failed, opened)
