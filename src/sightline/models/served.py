"""Models on a server that Sightline starts (vLLM or SGLang), calls like any endpoint, and stops."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import Meta, Struct
from msgspec.structs import replace

from sightline.config import cache_folder
from sightline.errors import UserError, is_key_shaped, is_secret_name
from sightline.models import process_supervisor
from sightline.models.base import Model, read_server_report
from sightline.models.http_client import CallError, HTTPClient, Timeouts
from sightline.models.local.load import IMAGE_SIZES, image_processor_of
from sightline.models.model_files import answer_files, digest_of_files, folder_of
from sightline.models.openai import EndpointArgs, OpenAICompatible
from sightline.text import UNDECODABLE, print_note
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
    """

    flags: str = ""
    executable: str = ""
    startup: Annotated[float, Meta(gt=0)] = 1200.0


class Served(Model):
    """A model on a local server, which runs for as long as requests are sent.

    If the server ends early, calls fail with the path of its log; the next run starts it again.
    """

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
        self.capabilities = replace(
            self._client.capabilities,
            endpoint=False,
            own_process=True,
            image_processor=command.image_processor,
        )

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        return self._client.effective(sampling)

    async def __aenter__(self) -> Self:
        """Start the server and wait until it answers; UserError with the end of its log if it does not."""
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

    async def __aexit__(self, *_: object) -> None:
        """Stop the server with all processes of its group."""
        await self._opened.aclose()

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
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
        """Create the log; nothing is started. `key`: the key that the server asks for; None for none."""
        self._command = command
        self._environment = environment or {}
        self._key = key
        self.log = _new_log(command)
        self._guard: subprocess.Popen[bytes] | None = None

    async def start(self, seconds: float) -> str:
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
        client = HTTPClient(address, self._key, Timeouts(HEALTH_SECONDS, HEALTH_SECONDS))
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


# -- The command that starts vLLM or SGLang for a model, and the identity of that model

CHOSEN_HERE = {
    "--host", "--port", "--uds", "--ssl-keyfile", "--ssl-certfile",
    "--model", "--model-path", "--served-model-name",
}  # fmt: skip
SECRET = {"--api-key", "--admin-api-key", "--hf-token", "--ssl-keyfile-password"}
FILE_OF_FLAGS = "--config"
OF_NO_EFFECT = {
    "--tensor-parallel-size", "-tp", "--tp", "--tp-size",
    "--pipeline-parallel-size", "-pp", "--pp-size",
    "--data-parallel-size", "-dp", "--dp", "--dp-size",
    "--gpu-memory-utilization", "--mem-fraction-static", "--max-num-seqs", "--max-running-requests",
    "--download-dir", "--log-level", "--uvicorn-log-level",
    "--enable-prompt-tokens-details", "--enable-cache-report",
}  # fmt: skip
"""Flags that change where and how fast a model runs, not what it answers: not part of its identity."""

KEY_OF_SERVER = "VLLM_API_KEY"
"""The environment variable with the key of a server."""

_WITH_KEY = (
    f"import os, runpy, sys; sys.argv += ['--api-key=' + os.environ['{KEY_OF_SERVER}']]; "
    "runpy.run_module('sglang.launch_server', run_name='__main__')"
)
"""Starts SGLang with its key, which other users of the machine must not see among its arguments. A key may
begin with '-', so it is one word with its option."""

_FLAG = re.compile(r"--?[A-Za-z]")


class ServerKind(Struct, frozen=True):
    """A server program that Sightline can start; `find` finds that of this environment, if there is one."""

    name: str
    title: str
    words: tuple[str, ...]
    elsewhere: str
    program: str
    find: Callable[[], str | None]


class ServerCommand(Struct, frozen=True):
    """How one model is served."""

    command: tuple[str, ...]
    served_name: str
    identity: str
    image_processor: Mapping[str, Any] = {}


def launch_with_key(words: Sequence[str], python: Sequence[str] = ()) -> list[str]:
    """Let SGLang take its key from the environment variable that vLLM reads by itself.

    `python`: the Python to start SGLang with; none for that of the command.
    """
    module = ["-m", "sglang.launch_server"]
    for at in range(1, len(words) - 1):
        if list(words[at : at + 2]) == module:
            return [*(python or words[:at]), "-c", _WITH_KEY, *words[at + 2 :]]
    return list(words)


def _vllm() -> str | None:
    return shutil.which("vllm") or shutil.which("vllm", path=str(Path(sys.executable).parent))


def _sglang() -> str | None:
    return sys.executable if find_spec("sglang") else None


VLLM = ServerKind("vllm", "vLLM", ("serve",), "vllm", "the program vllm", _vllm)
SGLANG = ServerKind(
    "sglang",
    "SGLang",
    ("-m", "sglang.launch_server", "--model-path"),
    "python3",
    "a Python with sglang installed",
    _sglang,
)


def server_command(
    kind: ServerKind,
    model: str,
    *,
    flags: str = "",
    program: str = "",
    starts: bool = True,
) -> ServerCommand:
    user_words = _words(flags, "flags")
    units = _units(user_words)
    for name, *_ in units:
        _refuse(kind, name)
    _refuse_secret_words(user_words, "flags")
    location = served = weights = model
    folder = folder_of(model)
    words = _program(kind, program) if starts else _words(program, "executable") or [kind.elsewhere]
    if folder is not None:
        location, served, weights = (
            str(folder),
            folder.resolve().name,
            f"sha256:{digest_of_files(folder, answer_files(folder))}",
        )
    telling = [shlex.join(unit) for unit in sorted(units, key=_order) if unit[0] not in OF_NO_EFFECT]
    return ServerCommand(
        command=(*words, *kind.words, location, "--served-model-name", served, *user_words),
        served_name=served,
        identity=" ".join([kind.name, weights, *telling]),
        image_processor=_image_processor(folder, units),
    )


def _image_processor(folder: Path | None, units: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The sizes to which the server's processor brings images, by the folder's files and the flags."""
    stated = image_processor_of(folder) if folder is not None else {}
    for name, *values in units:
        if name == "--mm-processor-kwargs" and len(values) == 1:
            with contextlib.suppress(*UNDECODABLE):
                options = json.loads(values[0])
                given = options if isinstance(options, dict) else {}
                stated |= {size: given[size] for size in IMAGE_SIZES if size in given}
    return stated


def _words(text: str, argument: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"--model-arg {argument}: {error}", expected="words as in a shell") from None


def _units(words: Sequence[str]) -> list[list[str]]:
    """Each flag with its values; names in one spelling, because both servers read --a_b=c as --a-b c."""
    units: list[list[str]] = []
    for word in words:
        if _FLAG.match(word):
            name, sign, value = word.partition("=")
            units.append([name.replace("_", "-"), *([value] if sign else [])])
        elif units:
            units[-1].append(word)
        else:
            raise UserError(
                "--model-arg flags does not begin with a flag", found=word, expected="--NAME VALUE ..."
            )
    return units


def _order(unit: Sequence[str]) -> str:
    """Sort key of a flag in the identity; a flag and its opposite keep their order: the last one counts."""
    return unit[0].replace("--no-", "--", 1)


def _refuse(kind: ServerKind, flag: str) -> None:
    """Refuse flags that the user must not set, abbreviations too: the servers accept prefixes of names."""
    full = next(
        (name for name in sorted(CHOSEN_HERE | SECRET | {FILE_OF_FLAGS}) if name.startswith(flag)), ""
    )
    label = flag if flag == full else f"{flag}, short for {full},"
    if full in CHOSEN_HERE:
        raise UserError(
            f"--model-arg flags: {label} is chosen by Sightline, which starts {kind.title} for itself alone",
            expected="flags without it, or a server of your own: --model http://HOST:PORT/v1#MODEL",
        )
    if full in SECRET:
        raise UserError(
            f"--model-arg flags: {label} would be written to the results",
            expected="HF_TOKEN in the environment to fetch weights; the server gets a random key",
        )
    if full == FILE_OF_FLAGS:
        raise UserError(
            f"--model-arg flags: {label} names a file of flags, which nobody would see in results",
            expected="the flags themselves",
        )


def _refuse_secret_words(words: Sequence[str], argument: str) -> None:
    """Refuse words that hold a secret, such as `env HF_TOKEN=... vllm`."""
    for word in words:
        name, sign, _ = word.partition("=")
        if (sign and is_secret_name(name)) or is_key_shaped(word):
            raise UserError(
                f"--model-arg {argument} contains a secret, which would be written to the results",
                found=name if sign and not is_key_shaped(name) else None,
                expected="the variable in the environment of this command, which the server inherits",
            )


def _program(kind: ServerKind, executable: str) -> list[str]:
    words = _words(executable, "executable") or [kind.find() or ""]
    _refuse_secret_words(words, "executable")
    program = shutil.which(os.path.expanduser(words[0])) if words[0] else None
    if program is None and executable:
        raise UserError(
            f"--model-arg executable: there is no program {words[0]}",
            expected=f"{kind.program}, of whichever environment",
        )
    if program is None:
        raise UserError(
            f"{kind.title} is not installed here",
            expected=f"pip install {kind.name}, or --model-arg executable=PATH of {kind.program}",
        )
    return [program, *words[1:]]
