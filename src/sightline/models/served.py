"""Models on a server that Sightline starts (vLLM or SGLang), calls like any endpoint, and stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

from msgspec import Meta
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.models import process_supervisor
from sightline.models.base import Model
from sightline.models.http.interface import CallError, HTTPClient, Timeouts
from sightline.models.http.opening import open_client
from sightline.models.image_references import ImageTraffic
from sightline.models.openai import EndpointArgs, OpenAICompatible
from sightline.models.server_command import KEY_OF_SERVER, ServerCommand, launch_with_key
from sightline.models.server_report import read_server_report
from sightline.output import print_note
from sightline.paths import cache_folder
from sightline.types import Answer, Failure, Request

HOST = "127.0.0.1"
POLL_SECONDS = 0.25
HEALTH_SECONDS = 5.0
STOP_SECONDS = 10.0
"""Seconds between SIGTERM and SIGKILL."""
UNSTOPPABLE_SECONDS = 5.0
"""Seconds to wait after SIGKILL, which does not end a process that hangs in a driver."""

KEEP_LOGS_SECONDS = 7 * 24 * 3600.0
"""How long a log is kept after its last line; by age, because other logs may be in use now."""

LOG_LINES = 15
LOG_BYTES = 16 * 1024

_PORT_TAKEN = re.compile(r"address already in use|port \d+ is (already|not available|in use)", re.IGNORECASE)
_STYLE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_SIGNALS = {number.value: number.name for number in signal.Signals}


class ServedArgs(EndpointArgs, frozen=True, forbid_unknown_fields=True):
    """`--model-arg` for servers that Sightline starts, in addition to those for endpoints.

    Attributes:
        startup: Seconds that the server may take to load.
        file_urls: Whether the server reads the images of the data folder itself. None: if `executable` is one
            word, because a program with arguments may start the server in a container.
    """

    flags: str = ""
    executable: str = ""
    file_urls: bool | None = None
    startup: Annotated[float, Meta(gt=0)] = 1200.0

    @property
    def reads_files(self) -> bool:
        """Whether the server reads images itself."""
        return len(self.executable.split()) < 2 if self.file_urls is None else self.file_urls


class Served(Model):
    """A model on a local server, which runs for as long as requests are sent.

    If the server ends early, calls fail with the path of its log; the next run starts it again.
    """

    batch_size = 1
    parallel: int | None = None

    def __init__(
        self,
        command: ServerCommand,
        connect: Callable[[str, str | None], OpenAICompatible],
        *,
        startup: float,
    ) -> None:
        """Prepare the server; nothing is started.

        Args:
            connect: Creates the model at an address, with the key of the server there or None.
            startup: Seconds that the server may take to load.
        """
        self.command = command
        self.connect = connect
        self._startup = startup
        # Name, identity and options do not depend on the address; this client serves before the start.
        self._client = connect(f"http://{HOST}/v1", None)
        self.name = self._client.name
        self.identity = self.host = command.identity
        # Its identity is that of the weights (docs/models.md), so it needs no check.
        self.capabilities = replace(self._client.capabilities, endpoint=False, own_process=True)

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Translate options as the endpoint does."""
        return self._client.effective(sampling)

    def image_traffic(self) -> ImageTraffic | None:
        """The bytes of images that were sent, and those of files that the server read itself."""
        return self._client.image_traffic()

    async def __aenter__(self) -> Self:
        """Start the server and wait until it answers. Raises UserError with the end of its log if it does
        not.
        """
        async with AsyncExitStack() as opened:
            # It may read files, which other users of this machine must not ask for.
            key = secrets.token_urlsafe(32)
            self._server = Server(
                replace(self.command, command=tuple(launch_with_key(self.command.command))),
                environment={KEY_OF_SERVER: key},
                key=key,
            )
            opened.push_async_callback(self._server.stop)
            print_note(f"{self.name}: loading; its log: {self._server.log}")
            try:
                address = await self._server.start(self._startup)
            except ServerError as error:
                raise UserError(f"{self.name}: {error}", quoted=error.last_lines) from None
            self._client = await opened.enter_async_context(self.connect(f"{address}/v1", key))
            self._opened = opened.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server with all processes of its group."""
        await self._opened.aclose()

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Send each request in one call."""
        async for index, result in self._client.answer(requests):
            if isinstance(result, Failure) and result.kind == "transient" and self._server.ended:
                gone = f"{self.name}: the server {self._server.ended}; its log: {self._server.log}"
                result = replace(result, message=gone)
            yield index, result


class ServerError(Exception):
    """A server did not start; the message says why. `last_lines` are the end of its log."""

    def __init__(self, message: str, last_lines: Sequence[str]) -> None:
        super().__init__(message)
        self.last_lines = last_lines


class Server:
    """A server process at a free port of the loopback interface, and its log.

    Its parent is `process_supervisor.py`, which ends it and its whole group when this process ends,
    however that happens.
    """

    def __init__(
        self, command: ServerCommand, *, environment: Mapping[str, str] | None = None, key: str | None = None
    ) -> None:
        """Create the log; nothing is started.

        Args:
            key: The key that the server asks for; None for none.
        """
        self._command = command
        self._environment = environment or {}
        self._key = key
        self.log = _new_log(command)
        self._guard: subprocess.Popen[bytes] | None = None

    async def start(self, seconds: float) -> str:
        """Start the server and wait until it is ready."""
        deadline = time.monotonic() + seconds
        address = self._spawn()
        ready = await self._is_ready(address, deadline)
        if self.ended and _PORT_TAKEN.search(self._end_of_log()):
            # Another process took the port between the check and the start of the server.
            address = self._spawn()
            ready = await self._is_ready(address, deadline)
        if ready:
            return address
        why = (
            f"the server {self.ended} before it was ready"
            if self.ended
            else f"the server was not ready within {seconds:g} s (--model-arg startup=SECONDS allows more)"
        )
        raise ServerError(f"{why}; the end of its log, {self.log}:", self._last_lines())

    @property
    def ended(self) -> str:
        """How the server ended, to follow 'the server'; '' while it runs."""
        status = None if self._guard is None else self._guard.poll()
        if status is None:
            return ""
        number = status - 128 if status > 128 else -status
        return f"was killed by {_SIGNALS[number]}" if number in _SIGNALS else f"ended with status {status}"

    async def stop(self) -> None:
        """Stop the server with its group, and wait until it has ended; if cancelled, it ends too."""
        if self._guard is None or self._guard.stdin is None:
            return
        self._guard.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS + UNSTOPPABLE_SECONDS):
                while self._guard.poll() is None:
                    await asyncio.sleep(0.02)

    def _spawn(self) -> str:
        """Start the server at a free port; returns its future address."""
        port = _free_port()
        command = [*self._command.command, "--host", HOST, "--port", str(port)]
        environment = {**os.environ, **self._environment}
        with self.log.open("ab") as log:
            log.write(f"$ {shlex.join(command)}\n".encode())
            log.flush()
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", process_supervisor.__file__, str(STOP_SECONDS), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        return f"http://{HOST}:{port}"

    async def _is_ready(self, address: str, deadline: float) -> bool:
        """Wait until the server is ready (True), has ended, or time is up."""
        client = open_client(address, self._key, Timeouts(HEALTH_SECONDS, HEALTH_SECONDS))
        async with aclosing(client):
            while not self.ended and time.monotonic() < deadline:
                with contextlib.suppress(CallError):
                    if await self._answers(client):
                        return True
                await asyncio.sleep(POLL_SECONDS)
        return False

    async def _answers(self, client: HTTPClient) -> bool:
        """Whether the server is healthy and has our model; another process that took the port has not."""
        if (await client.call("/health")).status != 200:
            return False
        reply = await client.call("/v1/models")
        report = read_server_report(reply.body, "", self._command.served_name) if reply.is_whole else None
        return report is not None and report.id is not None

    def _end_of_log(self) -> str:
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_BYTES))
            return log.read().decode("utf-8", "replace")

    def _last_lines(self) -> list[str]:
        """The last lines of the log without colours."""
        lines = _STYLE.sub("", self._end_of_log()).split("\n")
        lines = [line.rstrip().rpartition("\r")[2] for line in lines if line.strip()]
        return [f"  {line}" for line in lines[-LOG_LINES:]]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
    return port


def _new_log(command: ServerCommand) -> Path:
    """Create a file in the user's cache folder, named after model and time; old logs are removed."""
    folder = cache_folder() / "logs"
    model = re.sub(r"[^\w.-]+", "-", command.served_name).strip("-")[-80:]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(".log", f"{model}-{time.strftime('%Y%m%d-%H%M%S')}-", folder)
    except OSError as error:
        raise UserError(
            f"the server's log cannot be written ({error.strerror})",
            file=folder,
            expected="a writable folder, XDG_CACHE_HOME if it is set, otherwise ~/.cache",
        ) from None
    os.close(handle)
    _remove_old_logs(folder)
    return Path(name)


def _remove_old_logs(folder: Path) -> None:
    for log in folder.glob("*.log"):
        # Another process may remove it at the same time; a remaining log does no harm.
        with contextlib.suppress(OSError):
            if time.time() - log.stat().st_mtime > KEEP_LOGS_SECONDS:
                log.unlink()
