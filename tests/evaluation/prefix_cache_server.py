"""A server with a prefix cache as vLLM's, which reports the cached tokens of each request."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from aiohttp import web

BLOCK = 16
"""Tokens of a block (vLLM's default)."""
IMAGE_TOKENS = 576
"""Tokens of an image (LLaVA-1.5 at 336 pixels)."""

_PIECES = re.compile(r"\s*\w{1,5}|\s*\S")


class PrefixCache:
    """Blocks of 16 tokens, each known by its content and all blocks before it.

    vllm/v1/core/kv_cache_manager.py: blocks enter the cache when their request is scheduled, not at its end;
    the least recently used ones leave it first; the last token of a prompt is always computed.
    """

    def __init__(self, blocks: int | None = None) -> None:
        self._size = blocks
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def cached(self, tokens: Sequence[str]) -> int:
        """The cached tokens of a prompt, which is then in the cache itself."""
        hashes = _hashes(tokens)
        hits = 0
        for block in hashes[: (len(tokens) - 1) // BLOCK]:
            if block not in self._blocks:
                break
            hits += 1
        # From the end, so that the blocks that more prompts share stay longer.
        for block in reversed(hashes):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while self._size is not None and len(self._blocks) > self._size:
            self._blocks.popitem(last=False)
        return hits * BLOCK


def _hashes(tokens: Sequence[str]) -> list[bytes]:
    hashes, before = [], b""
    for start in range(0, len(tokens) - BLOCK + 1, BLOCK):
        before = hashlib.md5(before + "\0".join(tokens[start : start + BLOCK]).encode()).digest()
        hashes.append(before)
    return hashes


def cached_tokens(prompts: Iterable[Sequence[str]], blocks: int | None = None) -> int:
    """The cached tokens of prompts that are sent in this order."""
    cache = PrefixCache(blocks)
    return sum(map(cache.cached, prompts))


def tokens_of(messages: Sequence[Any]) -> list[str]:
    """The tokens of a prompt: those of an image are made of its content."""
    tokens = []
    for message in messages:
        tokens.append(f"<{message['role']}>")
        content: Any = message["content"]
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}]
        for part in parts if isinstance(content, str) else content:
            if part["type"] == "text":
                tokens += _PIECES.findall(part["text"])
            else:
                digest = hashlib.md5(part["image_url"]["url"].encode()).hexdigest()
                tokens += [digest] * IMAGE_TOKENS
    return [*tokens, "<assistant>"]


class PrefixCacheServer:
    """Answers "(A)" to everything.

    Attributes:
        prompts: The tokens of each request, in the order of their arrival.
        cached: How many tokens were cached in all.
    """

    def __init__(self, blocks: int | None = None, *, seconds: Callable[[], float] = lambda: 0.0) -> None:
        self.prompts: list[list[str]] = []
        self.cached = 0
        self._cache = PrefixCache(blocks)
        self._seconds = seconds

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
        tokens = tokens_of(json.loads(await request.read())["messages"])
        cached = self._cache.cached(tokens)
        self.prompts.append(tokens)
        self.cached += cached
        await asyncio.sleep(self._seconds())
        usage: dict[str, Any] = {"prompt_tokens": len(tokens), "completion_tokens": 1}
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
        choice = {"index": 0, "message": {"role": "assistant", "content": "(A)"}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": usage})
