"""A replica that is an actor of Ray."""

from __future__ import annotations

import asyncio
from typing import Any

from sightline.errors import UserError
from sightline.images import BadImage, read_original
from sightline.replicas.base import ReplicaLostError
from sightline.replicas.on_ray.connecting import first_line
from sightline.replicas.on_ray.connection import losses
from sightline.types import Answer, Failure, Request


class RayReplica:
    """A running actor; images go to it by path, or as bytes if its node does not share the files."""

    def __init__(self, name: str, ray: Any, actor: Any) -> None:
        self.name = name
        self._ray = ray
        self._actor = actor
        self._shares_files = True

    async def answer(self, request: Request) -> Answer | Failure:
        """Answer one request. Raises ReplicaLostError if the actor, its node, device or disk is lost."""
        sends = not self._shares_files
        while True:
            try:
                contents = await asyncio.to_thread(_contents, request) if sends else {}
            except BadImage as error:
                return Failure("permanent", str(error))
            if contents:
                self._shares_files = False
            kind, value = await self._call(request, contents)
            if kind == "done":
                result: Answer | Failure = value
                return result
            if kind == "absent":
                sends = True
            elif kind == "wrong":
                raise UserError(f"{self.name}: {value}")
            else:
                # It does not answer any more; the launcher replaces the actor.
                self._ray.kill(self._actor)
                raise ReplicaLostError(value, received=kind != "unwritable")

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
    """Path -> bytes of the images. BadImage if one is missing or has changed."""
    return {image.path: read_original(image.path, image.digest) for image in request.images.values()}
