"""Starts and calls workers; their results are as the model in this process would give them."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from sightline.config import Config
from sightline.errors import EnvironmentFailedError, UserError
from sightline.images import BadImage
from sightline.models.chat import ChatRequestEncoder, failure_of_status, too_large
from sightline.models.http_client import CallError, HTTPClient, Timeouts
from sightline.models.served import POLL_SECONDS, Server, ServerCommand, ServerError
from sightline.replicas.fleet import Joined, Left, RemoteReplica, Target, is_healthy
from sightline.text import print_note
from sightline.types import Answer, Failure, Request

CONNECT_SECONDS = 30


class WorkerClient:
    """A connection to one worker."""

    def __init__(self, address: str, model: str, key: str) -> None:
        self._address = address
        self._key = key
        self._host = address.partition("://")[2]
        self._encoder = ChatRequestEncoder(model)

    async def __aenter__(self) -> Self:
        # An answer may take as long as it takes: who waits knows by other means whether the worker lives.
        self._client = HTTPClient(self._address, self._key, Timeouts(None, CONNECT_SECONDS))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def send(self, request: Request) -> Answer | Failure:
        try:
            body = await encode_request(request, self._encoder)
        except BadImage as error:
            return Failure("permanent", str(error))
        try:
            reply = await self._client.call("/v1/chat/completions", body)
        except CallError as error:
            return Failure("transient", f"{self._host}: {error}")
        if not reply.is_whole:
            return too_large(self._host)
        result = read_reply(reply.body)
        if result is not None:
            return result
        if reply.status == 200:
            return Failure("transient", f"{self._host}: not the reply of a worker")
        return failure_of_status(self._host, reply.status, reply.body, reply.headers)


# -- Replicas in processes of this machine: one worker for each GPU

MAX_STARTS = 3
"""How often the worker of a GPU is started, if it ends."""

MAX_PROCESSES = 1024

STARTUP_SECONDS = 1200.0

LOOK_SECONDS = 5.0
"""How often a process is asked whether it is healthy while no request has reported it as lost."""

SILENT_SECONDS = 60.0
"""How long a process that lives may say nothing before it is ended."""

SILENT_LOOKS = 3
"""How often it must have said nothing: after a pause of this process alone, one look fails."""


def launcher(target: Target, number: str, config: Config) -> Processes:
    """Create the launcher of `--on processes[:N]`; nothing is started."""
    if target.spec != "mini" and not target.spec.startswith("hf/"):
        raise UserError(
            "--on processes runs local models only",
            found=target.spec,
            expected="hf/... or mini; vLLM and SGLang use several GPUs themselves (docs/cluster.md)",
        )
    if number and not (number.isascii() and number.isdigit() and 1 <= int(number) <= MAX_PROCESSES):
        raise UserError("--on processes:N is wrong", found=number, expected=f"1 to {MAX_PROCESSES}")
    return Processes(target, int(number) if number else len(visible_gpus()) or 1)


class Processes:
    """Starts workers for one model on this machine, each with a GPU of its own if there are any."""

    place = "this machine"

    def __init__(self, target: Target, replicas: int) -> None:
        self.replicas = replicas
        self._target = target
        self._ever_ready = False
        self._last_lines: Sequence[str] = ()

    async def run(self, joined: Joined, left: Left) -> None:
        gpus = visible_gpus()
        keeping: list[asyncio.Task[str]] = []
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.replicas):
                gpu = gpus[number % len(gpus)] if gpus else None
                keeping.append(tasks.create_task(self._keep(number, gpu, joined, left)))
        reason = keeping[0].result()
        if not self._ever_ready:
            raise UserError(f"{self._target.model.name}: {reason}", quoted=self._last_lines)
        raise EnvironmentFailedError(
            f"{self._target.model.name}: every process has ended, and none is started any more"
            f" ({MAX_STARTS} starts of each); one of them: {reason}"
        )

    async def _keep(self, number: int, gpu: str | None, joined: Joined, left: Left) -> str:
        """Start the worker of one GPU, again where it ends; returns why the last one has ended."""
        name = f"process {number + 1}" + (f" on GPU {gpu}" if gpu is not None else "")
        why = ""
        for _ in range(MAX_STARTS):
            key = secrets.token_urlsafe(32)
            environment = {KEY_VARIABLE: key}
            if gpu is not None:
                environment["CUDA_VISIBLE_DEVICES"] = gpu
            server = Server(self._command, environment=environment, key=key)
            try:
                address = await server.start(STARTUP_SECONDS)
                self._ever_ready = True
                async with WorkerClient(address, self._target.model.name, key) as client:
                    why = await _use(server, name, address, client, joined, left)
            except ServerError as error:
                why, self._last_lines = str(error), error.last_lines
                break
            finally:
                await server.stop()
        print_note(f"{self._target.model.name}: {name} is not started again: {why}")
        return f"{name}: {why}"

    @property
    def _command(self) -> ServerCommand:
        model = self._target.model
        words = worker_words(self._target.spec, self._target.args)
        return ServerCommand((sys.executable, *words), model.name, model.identity)


async def _use(
    server: Server, name: str, address: str, client: WorkerClient, joined: Joined, left: Left
) -> str:
    """Let requests come to a worker until its process ends or is silent; returns why it has ended.

    A process that lives joins again after a request reported it as lost, as soon as it is healthy. Requests
    have no time limit, so only these looks notice a process that is stopped or hangs.
    """
    why = "it is not needed any more"
    replica = RemoteReplica(name, address, client.send)
    joined(replica)
    looked = silent_since = time.monotonic()
    silent_looks = 0
    try:
        while not server.ended:
            await asyncio.sleep(POLL_SECONDS)
            if not (replica.is_lost or silent_looks) and time.monotonic() - looked < LOOK_SECONDS:
                continue
            looked = time.monotonic()
            if await is_healthy(address):
                silent_looks = 0
                if replica.is_lost:
                    replica = RemoteReplica(name, address, client.send)
                    joined(replica)
                continue
            silent_since = silent_since if silent_looks else looked
            silent_looks += 1
            if silent_looks >= SILENT_LOOKS and time.monotonic() - silent_since >= SILENT_SECONDS:
                break
        how = server.ended or f"did not answer for {SILENT_SECONDS:g} s"
        why = f"the worker {how}; its log: {server.log}"
    finally:
        replica.lose(why)
        left(name, why)
    return why


def visible_gpus() -> list[str]:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [gpu.strip() for gpu in chosen.split(",") if gpu.strip() and gpu.strip() != "-1"]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


# -- The command that starts a worker


def worker_words(spec: str, args: Mapping[str, Any]) -> list[str]:
    words = ["-m", "sightline", "worker", "--model", spec, "--log-requests"]
    for name, value in sorted(args.items()):
        words += ["--model-arg", f"{name}={json.dumps(value)}"]
    return words


# -- What a worker and its clients send: chat completions, with one more field for what the protocol lacks

KEY_VARIABLE = "SIGHTLINE_WORKER_KEY"
"""The environment variable with the key of a worker."""

FIELD = "sightline"
"""The field of requests and replies that other servers do not have."""


class RequestField(Struct, frozen=True, forbid_unknown_fields=True):
    """What a request of ours holds besides the chat."""

    key: str = ""
    draw: int = 0
    choices: tuple[str, ...] = ()


class ReplyField(Struct, frozen=True, omit_defaults=True):
    """The result as the model in this process would give it."""

    answer: Answer | None = None
    failure: Failure | None = None


class _Reply(Struct):
    sightline: ReplyField


async def encode_request(request: Request, encoder: ChatRequestEncoder) -> bytes:
    """Encode a request for a worker. `encoder`: encodes the chat; it sends the bytes that a model in this
    process would read.
    """
    # The encoder adds the draw to the seed, for servers that do not have draws.
    body = await encoder.encode(replace(request, draw=0))
    field = RequestField(request.key, request.draw, request.choices)
    return b'%s,"%s":%s}' % (body[:-1], FIELD.encode(), msgspec.json.encode(field))


def read_reply(raw: bytes) -> Answer | Failure | None:
    """The result in a worker's reply; None if the body is none of a worker."""
    try:
        field = msgspec.json.decode(raw, type=_Reply).sightline
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return field.answer or field.failure


def completion(answer: Answer, model: str, key: str, created: int) -> dict[str, Any]:
    """The reply with an answer; `created` is in seconds since 1970."""
    usage = {name: value for name, value in asdict(answer.usage).items() if isinstance(value, int)}
    usage["total_tokens"] = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    return {
        "id": f"chatcmpl-{key[:24]}",
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.text},
                "finish_reason": answer.finish_reason or "stop",
            }
        ],
        "usage": usage,
        FIELD: ReplyField(answer=answer),
    }


def error(message: str, kind: str, failure: Failure | None = None, code: str | None = None) -> dict[str, Any]:
    """The reply with an error; without `failure`, the model was not asked; `code` None follows from it."""
    if failure is not None and failure.kind == "blocked":
        code = "context_length_exceeded"
    body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return body if failure is None else {**body, FIELD: ReplyField(failure=failure)}


# -- The key of a worker: random for each run, in an environment variable or in a file for its owner only

SHORTEST = 16


def worker_key(file: Path) -> tuple[str, bool]:
    """The key that clients must send; a new one is written to `file` if it and the variable have none."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key:
        _check(key, KEY_VARIABLE)
        return key, False
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return write_key(file), True
    except FileExistsError:
        return read_key(file), True
    except OSError as error:
        raise UserError(f"the key cannot be written ({error.strerror})", file=file) from None


def write_key(file: Path) -> str:
    key = secrets.token_urlsafe(32)
    # The file has its key from the beginning: a process that ends in between leaves none without.
    draft = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(key)
        os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    return key


def read_key(file: Path) -> str:
    try:
        with file.open() as lines:
            if stat.S_IMODE(os.fstat(lines.fileno()).st_mode) & 0o077:
                raise UserError("others may read this key", file=file, expected=f"chmod 600 {file}")
            key = lines.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the key cannot be read ({error})", file=file) from None
    _check(key, str(file))
    return key


def _check(key: str, where: str) -> None:
    if len(key) < SHORTEST or not key.isascii() or not key.isprintable():
        raise UserError(f"the key in {where} is too short", expected=f"{SHORTEST} random characters or more")
