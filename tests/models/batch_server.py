"""A stand-in for a provider with files, batches and chat completions, after OpenAI's public API reference.

`python batch_server.py --port N` serves it on the loopback interface. It answers a request by the digest of
its messages, whether it comes alone or in a batch, and counts how often each one was answered: that is what a
user pays. POST /control changes the options of the command line while it runs; GET /stats tells the counts.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from aiohttp import web

STATES = ("validating", "in_progress", "finalizing")


class Provider:
    """The files and batches of a provider."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.paid: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.keys: set[str] = set()
        self.live = 0

    def body_of(self, request: dict[str, Any]) -> dict[str, Any]:
        """A chat completion: one of six letters, by the digest of the messages; a judge says "right"."""
        digest = hashlib.sha256(json.dumps(request["messages"]).encode()).digest()
        self.paid[digest.hex()] += 1
        text = self.options.reply or f"({'ABCDEF'[digest[0] % 6]})"
        text = "right" if request["model"] == "judge" else text
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "c", "model": request["model"], "choices": [choice], "usage": usage}

    def fails(self, line: Mapping[str, Any]) -> bool:
        """Whether a line fails at this attempt: drawn by its messages, as its id has the server's port."""
        self.failed[line["custom_id"]] += 1
        seed = f"{json.dumps(line['body']['messages'])} {self.failed[line['custom_id']]}"
        return bool(random.Random(seed).random() < self.options.fail_rate)

    def run(self, batch: dict[str, Any]) -> None:
        """Answer the lines of a batch in another order; the files appear when the batch ends."""
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        random.Random(batch["id"]).shuffle(lines)
        answered = lines if self.options.expire_after is None else lines[: self.options.expire_after]
        output: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for line in answered:
            about = {"id": f"r-{len(output)}-{len(errors)}", "custom_id": line["custom_id"], "error": None}
            if self.fails(line):
                body: Any = {"error": {"message": "The server had an error", "type": "server_error"}}
                errors.append(about | {"response": {"status_code": 500, "request_id": "q", "body": body}})
            elif self.options.line_status and self.failed[line["custom_id"]] == 1:
                body = {"error": {"message": self.options.line_message}}
                status = self.options.line_status
                output.append(about | {"response": {"status_code": status, "request_id": "q", "body": body}})
            elif not (self.options.omit and self.failed[line["custom_id"]] == 1):
                body = self.body_of(line["body"])
                output.append(about | {"response": {"status_code": 200, "request_id": "q", "body": body}})
        if self.options.expire_after is not None:
            expired = {"code": "batch_expired", "message": "This request could not be executed in time."}
            missed = lines[self.options.expire_after :]
            errors += [
                {"custom_id": line["custom_id"], "response": None, "error": expired} for line in missed
            ]
        for name, results in (("output_file_id", output), ("error_file_id", errors)):
            if results:
                batch[name] = f"file-{name}-{batch['id']}"
                text = "\n".join(json.dumps(one) for one in results)
                self.files[batch[name]] = (text + "\n" * (not self.options.no_line_feed)).encode()
        counts = {"total": len(lines), "completed": len(output), "failed": len(lines) - len(output)}
        batch["request_counts"] = counts
        batch["status"] = "completed" if self.options.expire_after is None else "expired"
        self.options.expire_after = None

    def look(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A batch as it is now: it goes through its states in `seconds`."""
        if batch["status"] in STATES:
            age = time.monotonic() - batch["began"]
            if age >= self.options.seconds:
                self.run(batch)
            else:
                batch["status"] = STATES[int(len(STATES) * age / self.options.seconds)]
        return {name: value for name, value in batch.items() if name != "began"}

    @web.middleware
    async def check(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Check the key, and count the calls."""
        options = self.options
        if request.path.startswith("/v1/"):
            self.calls[f"{request.method} {request.path.split('/')[2]}"] += 1
            self.keys.add(request.headers.get("Authorization", ""))
            if options.key and request.headers.get("Authorization") != f"Bearer {options.key}":
                return refuse(401, f"wrong key, not {options.key}")
            if options.outage and request.method == "GET":
                options.outage -= 1
                return refuse(503, "busy")
        reply: web.StreamResponse = await handler(request)
        return reply

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})

    async def chat(self, request: web.Request) -> web.Response:
        self.live += 1
        return web.json_response(self.body_of(await request.json()))

    async def upload(self, request: web.Request) -> web.Response:
        if self.options.no_batches:
            raise web.HTTPNotFound
        assert request.content_type == "multipart/form-data", request.content_type
        fields: dict[str, bytes] = {}
        async for part in await request.multipart():
            fields[part.name or ""] = bytes(await part.read())  # type: ignore[union-attr]
        assert fields["purpose"] == b"batch"
        if len(fields["file"]) > self.options.most_bytes:
            return refuse(413, "the file is too large")
        name = f"file-{len(self.files)}"
        self.files[name] = fields["file"]
        self.kill_at("upload")
        return web.json_response(
            {"id": name, "object": "file", "bytes": len(fields["file"]), "purpose": "batch"}
        )

    async def create(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        if self.options.refusals:
            self.options.refusals -= 1
            return refuse(429, "too many batches")
        self.kill_at("create")
        name = f"batch_{len(self.batches)}"
        batch = {"id": name, "object": "batch", "endpoint": body["endpoint"], "status": "validating"}
        batch |= {"input_file_id": body["input_file_id"], "completion_window": "24h", "errors": None}
        batch |= {"output_file_id": None, "error_file_id": None, "created_at": int(time.time())}
        lines = self.files[body["input_file_id"]].splitlines()
        batch["request_counts"] = {"total": len(lines), "completed": 0, "failed": 0}
        assert len(lines) <= self.options.most_lines
        self.batches[name] = batch | {"began": time.monotonic()}
        if self.options.problem:
            problem = json.loads(self.options.problem)
            self.options.problem = ""
            self.batches[name] |= {"status": "failed", "errors": {"object": "list", "data": problem}}
        if self.options.lose_reply:
            self.options.lose_reply -= 1
            assert request.transport is not None
            request.transport.close()
        self.kill_at("created")
        return web.json_response(self.look(self.batches[name]))

    async def retrieve(self, request: web.Request) -> web.Response:
        self.kill_at("poll")
        batch = self.batches.get(request.match_info["name"])
        return web.json_response(self.look(batch)) if batch else refuse(404, "no such batch")

    async def listed(self, request: web.Request) -> web.Response:
        names = list(reversed(self.batches))
        if after := request.query.get("after"):
            names = names[names.index(after) + 1 :]
        limit = min(int(request.query.get("limit", 20)), self.options.page)
        data = [self.look(self.batches[name]) for name in names[:limit]]
        return web.json_response({"object": "list", "data": data, "has_more": len(names) > limit})

    async def content(self, request: web.Request) -> web.StreamResponse:
        body = self.files.get(request.match_info["name"])
        if body is None:
            return refuse(404, "no such file")
        reply = web.StreamResponse()
        reply.content_length = len(body)
        await reply.prepare(request)
        half = len(body) // 2
        await reply.write(body[:half])
        self.kill_at("download")
        if self.options.break_downloads:
            self.options.break_downloads -= 1
            assert request.transport is not None
            request.transport.close()
            return reply
        await reply.write(body[half:])
        return reply

    async def control(self, request: web.Request) -> web.Response:
        vars(self.options).update(await request.json())
        return web.json_response({})

    async def forget(self, request: web.Request) -> web.Response:
        self.files.pop(request.match_info["name"], None)
        return web.json_response({})

    async def stats(self, _: web.Request) -> web.Response:
        paid = self.paid
        return web.json_response(
            {
                "paid": len(paid),
                "paid_twice": sum(count > 1 for count in paid.values()),
                "live": self.live,
                "batches": [self.look(batch) for batch in self.batches.values()],
                "files": {name: len(body) for name, body in self.files.items()},
                "failed": sum(count - 1 for count in self.failed.values()),
                "calls": self.calls,
                "keys": sorted(self.keys),
            }
        )

    def kill_at(self, moment: str) -> None:
        """Kill the process whose number `kill` has, at the moment that `kill_at` names."""
        if self.options.kill and self.options.kill_at == moment:
            process, self.options.kill = self.options.kill, 0
            os.kill(process, signal.SIGKILL)
            time.sleep(0.1)


def refuse(status: int, message: str) -> web.Response:
    """An error as the API words it."""
    return web.json_response({"error": {"message": message}}, status=status)


def application(provider: Provider) -> web.Application:
    """The provider's API."""
    made = web.Application(client_max_size=1 << 30, middlewares=[provider.check])
    made.router.add_get("/v1/models", provider.models)
    made.router.add_post("/v1/chat/completions", provider.chat)
    made.router.add_post("/v1/files", provider.upload)
    made.router.add_get("/v1/files/{name}/content", provider.content)
    made.router.add_delete("/v1/files/{name}", provider.forget)
    made.router.add_post("/v1/batches", provider.create)
    made.router.add_get("/v1/batches", provider.listed)
    made.router.add_get("/v1/batches/{name}", provider.retrieve)
    made.router.add_post("/control", provider.control)
    made.router.add_get("/stats", provider.stats)
    return made


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--port", type=int, default=0)
    add("--seconds", type=float, default=0.0, help="until a batch is completed")
    add("--fail-rate", type=float, default=0.0, help="share of lines that fail, at each attempt")
    add("--expire-after", type=int, help="the next batch to end expires after so many lines")
    add("--omit", action="store_true", help="lines of a first attempt have no result")
    add("--line-status", type=int, default=0, help="HTTP status of lines of a first attempt")
    add("--line-message", default="no")
    add("--problem", default="", help="why the next batch fails, as the JSON of errors.data")
    add("--refusals", type=int, default=0, help="batches that are refused with 429")
    add("--lose-reply", type=int, default=0, help="batches that are created without a reply")
    add("--break-downloads", type=int, default=0, help="files whose transfer breaks half-way")
    add("--outage", type=int, default=0, help="GET calls that fail with 503")
    add("--no-batches", action="store_true")
    add("--no-line-feed", action="store_true", help="files do not end with a line feed")
    add("--most-lines", type=int, default=50_000)
    add("--most-bytes", type=int, default=200_000_000)
    add("--page", type=int, default=100)
    add("--key", default="")
    add("--reply", default="")
    add("--kill", type=int, default=0, help="a process that is killed once")
    add("--kill-at", default="", help="upload, create, created, poll or download")
    return parser.parse_args(words)


async def serve() -> None:
    """Serve until the process is killed."""
    options = parse()
    runner = web.AppRunner(application(Provider(options)), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", options.port)
    await site.start()
    print("listening", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
