"""A model server that logs every request: who sent it, when it arrived, when it was answered.

    python tests/chaos/server.py

It prints its port. Answers depend on the request only. `GET /log` returns the log, `POST /reset` empties it.
Times are seconds of CLOCK_MONOTONIC, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time

from aiohttp import web

SECONDS = 0.15
"""The median time of an answer; the longest takes four times as long."""
FAILURE_PERCENT = 3
"""How many requests of a hundred fail when they arrive for the first time."""


class Server:
    """The log, and the handlers of the requests."""

    def __init__(self) -> None:
        self._log: list[dict[str, object]] = []
        self._seen: set[str] = set()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a chat request after its time, and log it."""
        body = await request.read()
        sender = request.headers.get("Authorization", "").removeprefix("Bearer ")
        digest = hashlib.sha256(body).digest()
        key = digest.hex()
        is_first = key not in self._seen
        self._seen.add(key)
        line: dict[str, object] = {
            "key": key,
            "sender": sender,
            "arrived": time.monotonic(),
            "answered": None,
        }
        line["failed"] = is_first and digest[0] * 100 < FAILURE_PERCENT * 256
        self._log.append(line)
        await asyncio.sleep(SECONDS * 4 ** (digest[1] / 128 - 1))
        if line["failed"]:
            return web.json_response({"error": {"message": "busy"}}, status=503)
        # Both kinds of prompts are answered: a judge reads the judgement.
        text = f"{digest[2] % 7}. Judgement: {'Yes' if digest[3] % 2 else 'No'}"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        line["answered"] = time.monotonic()
        return web.json_response({"model": "chaos", "choices": [choice], "usage": usage})

    async def show(self, _: web.Request) -> web.Response:
        """Return the log."""
        return web.json_response(self._log)

    async def reset(self, _: web.Request) -> web.Response:
        """Empty the log."""
        self._log.clear()
        self._seen.clear()
        return web.json_response({})


async def main() -> None:
    """Serve until the process ends."""
    server, app = Server(), web.Application()
    app.add_routes(
        [
            web.post("/v1/chat/completions", server.answer),
            web.get("/log", server.show),
            web.post("/reset", server.reset),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(json.dumps(runner.addresses[0][1]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
