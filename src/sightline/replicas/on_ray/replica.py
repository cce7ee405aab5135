"""A replica that is an actor of Ray."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from sightline.errors import UserError
from sightline.replicas.base import ReplicaLostError
from sightline.replicas.on_ray.connection import first_line, losses
from sightline.types import Answer, Failure, Request


class RayReplica:
    """A running actor; images go to it by path, or as bytes if its node does not share the files."""

    def __init__(self, name: str, ray: Any, actor: Any) -> None:
        """Take an actor that has opened the model.

        Args:
            name: Its name in messages.
            ray: The module.
            actor: Its handle.
        """
        self.name = name
        self._ray = ray
        self._actor = actor
        self._shares_files = True

    async def answer(self, request: Request) -> Answer | Failure:
        """Answer one request. Raises ReplicaLostError if the actor, its node or its device is lost."""
        while True:
            contents = {} if self._shares_files else await asyncio.to_thread(_contents, request)
            kind, value = await self._call(request, contents)
            if kind == "done":
                result: Answer | Failure = value
                return result
            if kind == "absent":
                self._shares_files = False
            elif kind == "wrong":
                raise UserError(f"{self.name}: {value}")
            else:
                # The model does not answer any more; the launcher replaces the actor.
                self._ray.kill(self._actor)
                raise ReplicaLostError(value)

    async def _call(self, request: Request, contents: dict[str, bytes]) -> tuple[str, Any]:
        reference = self._actor.answer.remote(request, contents)
        try:
            reply: tuple[str, Any] = await reference
        except asyncio.CancelledError:
            self._ray.cancel(reference)
            raise
        except losses(self._ray) as error:
            raise ReplicaLostError(first_line(error)) from None
        return reply


def _contents(request: Request) -> dict[str, bytes]:
    """Path -> bytes of the images; one that cannot be read is left out and fails on the node."""
    contents = {}
    for image in request.images.values():
        try:
            contents[image.path] = Path(image.path).read_bytes()
        except OSError:
            contents[image.path] = b""
    return contents
