"""A model on a node of Ray: opened once, asked by many requests at the same time."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sightline import __version__
from sightline.errors import EnvironmentFailedError, UserError
from sightline.images import BadImage
from sightline.models.resolve import ModelOptions, resolve
from sightline.replicas.gather import Gather
from sightline.replicas.on_ray.node_images import at_path, image_on_node
from sightline.replicas.on_ray.node_work import enter
from sightline.types import Answer, Failure, ImageFile, Request


class ModelCopy(Struct, frozen=True):
    """The model that a node opens."""

    spec: str
    args: Mapping[str, Any]
    identity: str
    folder: str
    version: str = __version__


class Hosted:
    """An open model."""

    def __init__(self, gather: Gather) -> None:
        self._gather = gather

    async def answer(
        self, request: Request, contents: Mapping[str, bytes]
    ) -> tuple[str, Answer | Failure | str | None]:
        """Answer a request.

        Args:
            contents: Path of an image -> its bytes, for images whose file this machine does not share.

        Returns:
            'done' and the answer or failure; the failure is permanent for bytes of another image. 'absent' if
            an image without bytes is not on this machine; 'unwritable' and the reason if its copy cannot be
            written; 'wrong' or 'failed' and the reason why the model can answer no request.
        """
        images: dict[str, ImageFile] = {}
        with ExitStack() as copies:
            for name, image in request.images.items():
                found = image_on_node(image.path, image.digest, contents.get(image.path))
                try:
                    local = copies.enter_context(found)
                except BadImage as error:
                    return "done", Failure("permanent", str(error))
                except EnvironmentFailedError as error:
                    return "unwritable", str(error)
                if local is None:
                    return "absent", None
                images[name] = at_path(image, local)
            try:
                return "done", await self._gather.answer(replace(request, images=images))
            except UserError as error:
                return "wrong", str(error)
            except EnvironmentFailedError as error:
                return "failed", str(error)


async def open_model(payload: bytes) -> tuple[str, Any]:
    try:
        return "done", await _opened(pickle.loads(payload))
    except UserError as error:
        return "wrong", str(error)
    except EnvironmentFailedError as error:
        return "failed", str(error)


async def _opened(copy: ModelCopy) -> Hosted:
    if copy.version != __version__:
        raise UserError("another version of Sightline", found=__version__, expected=copy.version)
    enter(copy.folder)
    [model] = resolve(copy.spec, ModelOptions(args=copy.args))
    if model.identity != copy.identity:
        raise UserError(f"{copy.spec} is another model there", found=model.identity, expected=copy.identity)
    gather = Gather(model)
    await gather.__aenter__()
    return Hosted(gather)
