"""Calls of an OpenAI-compatible provider's files and batches (API reference: /v1/files, /v1/batches)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from sightline.config import BatchSettings
from sightline.errors import UserError
from sightline.formats.files import writing
from sightline.images import BadImage
from sightline.models.chat import (
    decode_reply,
    failure_of_status,
    read_response,
    too_deep,
    too_large,
)
from sightline.models.http_client import MAX_BYTES, CallError, Timeouts, read_body
from sightline.models.openai import CONNECT_SECONDS, OpenAICompatible
from sightline.types import Answer, Failure, Request

if TYPE_CHECKING:
    import aiohttp


T = TypeVar("T")

CHAT = "/v1/chat/completions"
"""What each line of an input file calls, whatever the root of the API is."""

ENDED = ("completed", "failed", "expired", "cancelled")
"""The states that do not change any more."""

TRANSFER = Timeouts(None, CONNECT_SECONDS, silence=120)
"""For a file of any size, as long as something arrives."""
CALL = Timeouts(120, CONNECT_SECONDS)
"""For a call without a file."""
ATTEMPTS = 6
BACKOFF_SECONDS = 0.5
"""The pause after the first failed attempt; it doubles each time."""
PAGE = 100
OLDER_SECONDS = 86400.0
"""How far the clock of a provider may be behind."""


class CallFailedError(Exception):
    """A call failed, also when it was repeated; `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class BatchError(Struct, frozen=True):
    """Why a provider refused an input file, or a line of it, from 1."""

    code: str | None = None
    message: str | None = None
    line: int | None = None


class LineCounts(Struct, frozen=True):
    """The number of lines of a batch, of those with an answer, and of those that failed."""

    total: int = 0
    completed: int = 0
    failed: int = 0


class Batch(Struct, frozen=True):
    """A batch as the provider describes it. What providers spell differently is read leniently."""

    id: str
    status: str
    input_file_id: str = ""
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: Any = None
    request_counts: Any = None
    created_at: Any = None

    @property
    def problems(self) -> list[BatchError]:
        listed = self.errors.get("data") if isinstance(self.errors, dict) else self.errors
        found = [_converted(one, BatchError) for one in listed] if isinstance(listed, list) else []
        if not found and self.errors:
            return [BatchError(message=str(self.errors)[:1000])]
        return [one or BatchError(message="it gives no reason") for one in found]

    @property
    def counts(self) -> LineCounts:
        return _converted(self.request_counts, LineCounts) or LineCounts()

    @property
    def created(self) -> float:
        """When it was created, in seconds since 1970; 0 if the provider does not say."""
        return float(self.created_at) if isinstance(self.created_at, int | float) else 0.0


class _File(Struct, frozen=True):
    id: str


class _Page(Struct, frozen=True):
    data: list[Batch] = field(default_factory=list)
    has_more: bool = False


class BatchClient:
    """The files and batches of one endpoint; files of any size are sent and received in pieces."""

    def __init__(self, endpoint: OpenAICompatible, settings: BatchSettings) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._host = endpoint.host

    def open(self) -> None:
        self._client = self._endpoint.new_client()

    async def close(self) -> None:
        await self._client.aclose()

    async def upload(self, file: Path) -> str:
        """Upload an input file, which is read piece by piece."""

        async def send() -> str:
            import aiohttp

            form = aiohttp.FormData()
            form.add_field("purpose", "batch")
            with file.open("rb") as opened:
                form.add_field("file", opened, filename=file.name, content_type="application/jsonl")
                raw = await self._call("POST", "/files", TRANSFER, data=form)
            return self._decode(raw, _File).id

        return await _repeated(send)

    async def create(self, file: str) -> Batch:
        """Create a batch. A call that fails is not repeated: the batch may exist nevertheless."""
        body = {"input_file_id": file, "endpoint": CHAT, "completion_window": self._settings.window}
        return self._decode(await self._call("POST", "/batches", json=body), Batch)

    async def retrieve(self, batch: str) -> Batch:
        async def get() -> Batch:
            return self._decode(await self._call("GET", f"/batches/{batch}"), Batch)

        return await _repeated(get)

    async def find(self, file: str, created: float) -> Batch | None:
        """Find the batch that was created from an input file, unless the provider refused it.

        `created`: when the batch was created at the earliest, in seconds since 1970. Returns the batch; None
        if the list of batches does not have it.
        """
        after = ""
        while True:

            async def get(after: str = after) -> _Page:
                query = f"?limit={PAGE}{after and f'&after={after}'}"
                return self._decode(await self._call("GET", f"/batches{query}"), _Page)

            page = await _repeated(get)
            for batch in page.data:
                if batch.input_file_id == file and batch.status != "failed":
                    return batch
            last = page.data[-1] if page.data else None
            # The newest come first; some providers do not say when, and some return the first page always.
            is_too_old = last is not None and 0 < last.created < created - OLDER_SECONDS
            if last is None or last.id == after or not page.has_more or is_too_old:
                return None
            after = last.id

    async def lines(self, file: str) -> AsyncIterator[bytes]:
        """Read the lines of a file as they arrive; one that is too long ends after `MAX_BYTES`."""
        reader = LineReader()
        async with self._request("GET", f"/files/{file}/content", TRANSFER) as reply:
            async for piece in reply.content.iter_any():
                for line in reader.lines(piece):
                    yield self._endpoint.hide_key(line)
        if rest := reader.rest():
            yield self._endpoint.hide_key(rest)

    async def _call(self, method: str, path: str, timeouts: Timeouts = CALL, **content: Any) -> bytes:
        async with self._request(method, path, timeouts, **content) as reply:
            raw, _ = await read_body(reply)
        return self._endpoint.hide_key(raw)

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, timeouts: Timeouts, **content: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Make a call; raises what every status but 2xx means."""
        try:
            async with self._client.request(method, path, timeouts, **content) as reply:
                if reply.status // 100 != 2:
                    raw, _ = await read_body(reply)
                    raise self._error(method, path, reply, raw)
                yield reply
        except CallError as error:
            failure = self._endpoint.redact(Failure("transient", f"{self._host}: {error}"))
            assert isinstance(failure, Failure)
            raise CallFailedError(failure) from None

    def _error(self, method: str, path: str, reply: aiohttp.ClientResponse, raw: bytes) -> Exception:
        status = reply.status
        if status in (401, 403):
            return self._endpoint.refuse_key(status)
        if (status in (404, 405, 501) or 300 <= status < 400) and path.count("/") == 1:
            return UserError(
                f"{self._endpoint.address}{path.partition('?')[0]} does not exist: {self._host} has no"
                f" batches (HTTP {status})",
                expected="a provider with OpenAI's files and batches, or no --batch",
            )
        raw = self._endpoint.hide_key(raw)
        failure = failure_of_status(self._host, status, raw, reply.headers)
        found = self._endpoint.redact(failure)
        assert isinstance(found, Failure)
        return CallFailedError(msgspec.structs.replace(found, message=f"{method} {path}: {found.message}"))

    def _decode(self, raw: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise CallFailedError(
                Failure("transient", f"{self._host}: not what its API describes ({error})")
            ) from None


def _converted(value: Any, kind: type[T]) -> T | None:
    """A part of a reply as a struct; None if it is of another form."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return None


async def _repeated(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call that may be made twice, again where it fails for a moment."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return await call()
        except CallFailedError as error:
            if error.failure.kind != "transient" or error.failure.status == 404:
                raise
            await asyncio.sleep(max(BACKOFF_SECONDS * 2**attempt, error.failure.retry_after or 0.0))
    return await call()


# -- Writes requests to input files of batches, within a provider's limits of lines and bytes

AROUND_BODY = len(b'{"custom_id":"","method":"POST","url":"","body":}\n') + len(CHAT) + 64
"""The bytes of a line besides the body of its request; a key has 64 characters."""

Encode = Callable[[Request], Awaitable[bytes]]


class InputFile(Struct, frozen=True):
    """A file that is complete: the keys of its requests in the order of its lines, and its size."""

    path: Path
    keys: Sequence[str]
    bytes: int


class Unwritable(Struct, frozen=True):
    """A request that is in no file, and why."""

    key: str
    failure: Failure


async def input_files(
    requests: Sequence[Request], encode: Encode, settings: BatchSettings, folder: Path
) -> AsyncIterator[InputFile | Unwritable]:
    """Write requests to files, one by one. A file may be deleted when the next one is asked for."""
    number, keys, size = 0, list[str](), 0
    with writing(folder), ExitStack() as stack:
        file = stack.enter_context(_path(folder, number).open("wb"))
        for request in requests:
            try:
                line = input_line(request.key, await encode(request))
            except BadImage as error:
                yield Unwritable(request.key, Failure("permanent", str(error)))
                continue
            if len(line) > settings.bytes:
                yield Unwritable(request.key, _too_large(len(line), settings.bytes))
                continue
            if keys and (len(keys) == settings.lines or size + len(line) > settings.bytes):
                file.close()
                yield InputFile(_path(folder, number), keys, size)
                number, keys, size = number + 1, [], 0
                file = stack.enter_context(_path(folder, number).open("wb"))
            file.write(line)
            keys.append(request.key)
            size += len(line)
        file.close()
        if keys:
            yield InputFile(_path(folder, number), keys, size)


def input_line(key: str, body: bytes) -> bytes:
    return b'{"custom_id":%b,"method":"POST","url":"%b","body":%b}\n' % (
        json.dumps(key).encode(),
        CHAT.encode(),
        body,
    )


def _path(folder: Path, number: int) -> Path:
    return folder / f"sightline-{number}.jsonl"


def _too_large(size: int, limit: int) -> Failure:
    return Failure(
        "permanent",
        f"the request has {size:,} bytes, a file of a batch at most {limit:,}; --model-arg max_bytes=N or"
        " max_side=N makes its images smaller",
    )


# -- Reads the files of a batch's results: lines as they arrive, and the result that each line holds

_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]{1,200})"')

FINAL = (401, 403, 404)
"""Statuses of lines that another batch would not change: the key has no access, or there is no such model."""


class _Response(Struct):
    status_code: int = 0
    body: Raw = Raw(b"null")


class _Error(Struct):
    code: str | None = None
    message: str | None = None


class _Line(Struct):
    custom_id: str
    response: _Response | None = None
    error: _Error | None = None


_decoder = msgspec.json.Decoder(_Line)


class LineResult(NamedTuple):
    """The result of a request: the key of the request, and what became of it."""

    key: str
    result: Answer | Failure


class LineReader:
    """Divides pieces of a file into lines. Memory holds one line, at most `MAX_BYTES` and a piece of it."""

    def __init__(self) -> None:
        self._held = b""
        self._is_cut = False

    def lines(self, piece: bytes) -> Iterator[bytes]:
        """Add a piece of the file.

        Yields the lines that end in it. Of a line that is too long, only the first `MAX_BYTES` + 1 bytes.
        """
        first, *others = piece.split(b"\n")
        self._hold(first)
        for following in others:
            if self._held.strip():
                yield self._held
            self._held, self._is_cut = b"", False
            self._hold(following)

    def rest(self) -> bytes:
        """The last line, where the file does not end with a line feed; b'' if there is none."""
        return self._held.strip()

    def _hold(self, more: bytes) -> None:
        if not self._is_cut:
            self._held = self._held + more if self._held else more
            if len(self._held) > MAX_BYTES:
                self._held, self._is_cut = self._held[: MAX_BYTES + 1], True


def read_line(line: bytes, host: str) -> LineResult | None:
    """Read a line of a result file: key and result of the request; None for a line that names none."""
    if len(line) > MAX_BYTES:
        named = _ID.search(line[:4096])
        return LineResult(named[1].decode("utf-8", "replace"), too_large(host)) if named else None
    try:
        found = decode_reply(_decoder, line)
    except RecursionError:
        named = _ID.search(line[:4096])
        return LineResult(named[1].decode("utf-8", "replace"), too_deep(host)) if named else None
    except (msgspec.DecodeError, ValueError):
        return None
    return LineResult(found.custom_id, _result(found, host))


def _result(line: _Line, host: str) -> Answer | Failure:
    response, error = line.response, line.error
    if response is None or (error is not None and not response.status_code):
        code, message = (error.code, error.message) if error is not None else (None, None)
        return Failure("transient", f"{host}: {code or 'no response'}: {message or 'the line has no reason'}")
    body, status = bytes(response.body), response.status_code
    if 200 <= status < 300:
        # The time in the queue of the provider says nothing about the model.
        return read_response(body, host, 0.0)
    failure = failure_of_status(host, status, body, {})
    return msgspec.structs.replace(failure, kind="permanent") if status in FINAL else failure


# -- What a model of batches needs to keep between runs: which requests are in which batch


class OpenBatch(Struct, frozen=True, kw_only=True):
    """A batch whose answers are not all in the store.

    Attributes:
        batch: The provider's id of the batch; None if the batch may not exist.
        created: When the journal learned of it, in seconds since 1970.
    """

    number: int
    address: str
    file: str
    batch: str | None
    state: str
    requests: int
    created: float
    keys: frozenset[str] = frozenset()


class Journal(Protocol):
    """The batches at providers. It outlives the process, and others may use it at the same time."""

    async def add(self, address: str, file: str, keys: Sequence[str]) -> OpenBatch | None:
        """Add a batch that will be created from an uploaded file.

        Returns:
            The batch; None, and nothing is added, if a request is in another batch or has an answer by now.
        """
        ...

    async def find(self, keys: Sequence[str]) -> list[OpenBatch]: ...

    async def record_id(self, number: int, batch: str | None) -> None:
        """Record the provider's id of a batch.

        `batch`: the id; None if the batch was refused, so that another one is made from its file.
        """
        ...

    async def record_state(self, number: int, state: str) -> None: ...

    async def reserve(self, batch: OpenBatch) -> OpenBatch | None:
        """Reserve a batch, so that no other process follows it.

        Returns:
            The batch as it is now; None while another process has it.
        """
        ...

    async def release(self, batch: OpenBatch) -> None:
        """Let another process follow a batch, for the requests that this one did not ask for."""
        ...

    async def remove(self, number: int, keys: Sequence[str]) -> None:
        """Remove requests that a batch did not answer, so that another batch may hold them."""
        ...
