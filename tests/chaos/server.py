"""A model server that logs every request: who sent it, when it arrived, when it was answered.

    python tests/chaos/server.py

It prints its port. Answers depend on the request only. `GET /log` returns the log, `POST /reset` empties it;
the name of a fault in its body says how requests fail that arrive for the first time.
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
"""How many requests of a hundred fail when they arrive for the first time, and the server is only busy."""
FAULT_PERCENT = 30
"""The same with another fault."""
STORM = (20, 60)
"""In a storm, all requests from the first to the second number fail."""
DRIP_SECONDS = 0.2
"""The time between two bytes of a reply that drips, of which there are DRIP_BYTES."""
DRIP_BYTES = 10


class Server:
    """The log, and the handlers of the requests."""

    def __init__(self) -> None:
        self._log: list[dict[str, object]] = []
        self._seen: set[str] = set()
        self._fault = "busy"

    async def answer(self, request: web.Request) -> web.StreamResponse:
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
        percent = FAILURE_PERCENT if self._fault == "busy" else FAULT_PERCENT
        line["failed"] = is_first and digest[0] * 100 < percent * 256
        if self._fault == "storm":
            line["failed"] = STORM[0] <= len(self._log) < STORM[1]
        self._log.append(line)
        await asyncio.sleep(SECONDS * 4 ** (digest[1] / 128 - 1))
        if line["failed"]:
            return await FAULTS[self._fault](request)
        # Both kinds of prompts are answered: a judge reads the judgement.
        text = f"{digest[2] % 7}. Judgement: {'Yes' if digest[3] % 2 else 'No'}"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        line["answered"] = time.monotonic()
        return web.json_response({"model": "chaos", "choices": [choice], "usage": usage})

    async def show(self, _: web.Request) -> web.Response:
        """Return the log."""
        return web.json_response(self._log)

    async def reset(self, request: web.Request) -> web.Response:
        """Empty the log, and choose a fault."""
        self._fault = (await request.text()) or "busy"
        self._log.clear()
        self._seen.clear()
        return web.json_response({})


async def _busy(_: web.Request) -> web.StreamResponse:
    return web.json_response({"error": {"message": "busy"}}, status=503)


async def _storm(_: web.Request) -> web.StreamResponse:
    return web.Response(status=500, text="<html>Internal Server Error</html>")


async def _half(request: web.Request) -> web.StreamResponse:
    """A reply that ends in its midst."""
    reply = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
    await reply.prepare(request)
    await reply.write(b'{"model": "chaos", "choices": [{"index": 0, "mess')
    return _cut(request, reply)


async def _reset(request: web.Request) -> web.StreamResponse:
    """No reply, but a reset of the connection."""
    return _cut(request, web.Response())


async def _garbage(request: web.Request) -> web.StreamResponse:
    """Another thing than an answer, in one of several forms."""
    body = await request.read()
    bodies = (b"\xff\x00garbage", b"", b"null", b'{"choices": 7}', b'{"choices": []}', b"[" * 100_000)
    return web.Response(body=bodies[hashlib.sha256(body).digest()[4] % len(bodies)])


async def _drip(request: web.Request) -> web.StreamResponse:
    """A reply of which a byte comes from time to time, and not the last ones."""
    reply = web.StreamResponse(headers={"Content-Length": "1000"})
    await reply.prepare(request)
    for _ in range(DRIP_BYTES):
        await asyncio.sleep(DRIP_SECONDS)
        await reply.write(b" ")
    return _cut(request, reply)


def _cut(request: web.Request, reply: web.StreamResponse) -> web.StreamResponse:
    if isinstance(request.transport, asyncio.Transport):
        request.transport.abort()
    return reply


FAULTS = {
    "busy": _busy,
    "storm": _storm,
    "half": _half,
    "reset": _reset,
    "garbage": _garbage,
    "drip": _drip,
}
"""How a request fails."""


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
