"""A server that caches images by uuid as vLLM does, in a cache of so many images; it answers what it saw."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web


class ImageCacheServer:
    """An answer is the SHA-256 of each image that the server used, in their order.

    Attributes:
        asked: The parts of each request that are images: `data`, `uuid` or both, as they were sent.
        probes: How many requests found out whether it reads uuids.
        wrong: The uuids that are not the SHA-256 of the bytes beside them.
        refused: How many requests were refused because an image was missing.
        hold: While it is cleared, replies wait.
        failing: The status and the message of every reply; None for answers.
        ignores: Whether it reads no uuid, as servers other than vLLM do.
        refuses: Whether it refuses fields that it does not know, such as a uuid.
    """

    def __init__(self, size: int = 1000, seconds: float = 0.0) -> None:
        self.asked: list[list[dict[str, Any]]] = []
        self.probes = 0
        self.wrong: list[str] = []
        self.refused = 0
        self.hold = asyncio.Event()
        self.hold.set()
        self.failing: tuple[int, str] | None = None
        self.ignores = False
        self.refuses = False
        self._size = size
        self._seconds = seconds
        self._cache: OrderedDict[str, str] = OrderedDict()

    def restart(self) -> None:
        self._cache.clear()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", self._reply)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        finally:
            await runner.cleanup()

    async def _reply(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        parts = [part for message in body["messages"] for part in message["content"] if part != "?"]
        images = [part for part in parts if isinstance(part, dict) and part["type"] == "image_url"]
        is_probe = body.get("max_tokens") == 1
        if is_probe:
            self.probes += 1
        else:
            self.asked.append([self._shown(part) for part in images])
        await self.hold.wait()
        await asyncio.sleep(self._seconds)
        if self.failing is not None:
            return self._error(*self.failing)
        if self.ignores:
            return self._answer("")
        if self.refuses and any("uuid" in part for part in images):
            return self._error(400, "unknown field uuid")
        # Looked up before anything is cached: a miss changes nothing.
        for index, part in enumerate(images):
            if part["image_url"] is None and part["uuid"] not in self._cache:
                self.refused += not is_probe
                return self._error(400, f"Cache miss for image at index {index} but data is not provided.")
        return self._answer(" ".join(self._use(part) for part in images))

    def _use(self, part: dict[str, Any]) -> str:
        uuid = part.get("uuid")
        if uuid is None:
            return hashlib.sha256(_bytes(part)).hexdigest()
        if uuid not in self._cache:
            digest = hashlib.sha256(_bytes(part)).hexdigest()
            if uuid.partition("-")[0] != digest:
                self.wrong.append(uuid)
            self._cache[uuid] = digest
        used = self._cache[uuid]
        self._cache.move_to_end(uuid)
        if len(self._cache) > self._size:
            self._cache.popitem(last=False)
        return used

    @staticmethod
    def _shown(part: dict[str, Any]) -> dict[str, Any]:
        data = {} if part["image_url"] is None else {"data": _bytes(part)}
        return data | ({"uuid": part["uuid"]} if "uuid" in part else {})

    @staticmethod
    def _answer(text: str) -> web.Response:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice]})

    @staticmethod
    def _error(status: int, message: str) -> web.Response:
        error = {"message": message, "type": "BadRequestError", "param": None, "code": status}
        return web.json_response({"error": error}, status=status)


def _bytes(part: dict[str, Any]) -> bytes:
    return base64.b64decode(part["image_url"]["url"].partition(",")[2])
