"""Bodies of chat completions requests: messages as JSON, images as data URLs."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from sightline.images import data_url
from sightline.models.image_references import Exchange
from sightline.types import ImageFile, Message, Request, Text

DETAIL = "image_detail"
"""Our sampling option for OpenAI's `detail`, which goes with each image and not into the body."""

INLINE_BYTES = 256 * 1024
"""Images up to this size are encoded on the event loop in at most 0.6 ms; a thread adds 0.1 to 0.4 ms."""

CACHED_IMAGES = 64
"""Re-encoded images that are kept for the next probe with the same image."""


class ChatRequestEncoder:
    """Encodes the requests of one model. Belongs to one event loop."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._encoded: dict[tuple[str, str], asyncio.Task[msgspec.Raw]] = {}

    async def encode(self, request: Request, exchange: Exchange | None = None) -> bytes:
        """Encode a request.

        Args:
            exchange: Refers to images that the server can do without; None: the bytes of all are sent.
        """
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [await self._message(message, request, exchange) for message in request.messages],
            **{name: value for name, value in request.sampling.items() if name != DETAIL},
        }
        if "seed" in body:
            body["seed"] += request.draw
        return msgspec.json.encode(body)

    async def _message(self, message: Message, request: Request, exchange: Exchange | None) -> dict[str, Any]:
        match message.parts:
            case [Text(text)]:
                # Not every server accepts a list with one text.
                return {"role": message.role, "content": text}
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
            else:
                file = request.images[part.path]
                image = exchange.reference(file) if exchange is not None else None
                if image is None:
                    url = await self._data_url(file)
                    image = {"type": "image_url", "image_url": {"url": url}}
                    if exchange is not None:
                        image |= exchange.sends(file, bytes(url))
                if DETAIL in request.sampling:
                    image["image_url"]["detail"] = request.sampling[DETAIL]
                content.append(image)
        return {"role": message.role, "content": content}

    async def _data_url(self, file: ImageFile) -> msgspec.Raw:
        """The data URL as a JSON string; probes that share a re-encoded image share its encoding."""
        if not file.transform:
            if file.stamp[0] <= INLINE_BYTES:
                return _encode(file)
            return await asyncio.to_thread(_encode, file)
        address = (file.digest, file.transform)
        task = self._encoded.get(address)
        if task is None:
            task = self._encoded[address] = asyncio.create_task(asyncio.to_thread(_encode, file))
            if len(self._encoded) > CACHED_IMAGES:
                del self._encoded[next(iter(self._encoded))]
        return await asyncio.shield(task)


def _encode(file: ImageFile) -> msgspec.Raw:
    return msgspec.Raw(b'"%s"' % data_url(file))
