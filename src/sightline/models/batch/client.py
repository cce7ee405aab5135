"""Calls of an OpenAI-compatible provider's files and batches (API reference: /v1/files, /v1/batches)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct, field

from sightline.config import BatchSettings
from sightline.errors import UserError
from sightline.models.batch.result_lines import LineReader
from sightline.models.chat_response import failure_of_status
from sightline.models.openai import CONNECT_SECONDS, OpenAICompatible
from sightline.models.reply_body import read_body
from sightline.types import Failure

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

CHAT = "/v1/chat/completions"
"""What each line of an input file calls, whatever the root of the API is."""

ENDED = ("completed", "failed", "expired", "cancelled")
"""The states that do not change any more."""

SILENCE_SECONDS = 120
"""How long a transfer may send nothing."""
CALL_SECONDS = 120
"""How long a call without a file may take."""
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
        """Why the provider refused the input file."""
        listed = self.errors.get("data") if isinstance(self.errors, dict) else self.errors
        found = [_converted(one, BatchError) for one in listed] if isinstance(listed, list) else []
        if not found and self.errors:
            return [BatchError(message=str(self.errors)[:1000])]
        return [one or BatchError(message="it gives no reason") for one in found]

    @property
    def counts(self) -> LineCounts:
        """The number of lines, and of those with a result."""
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
    """The files and batches of one endpoint. Use it as an async context manager.

    It uses aiohttp, not the client of `models/http`: files of any size are sent and received in pieces.
    """

    def __init__(self, endpoint: OpenAICompatible, settings: BatchSettings) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._host = endpoint.host
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Open a session."""
        self._session = self._endpoint.new_session()

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()

    async def upload(self, file: Path) -> str:
        """Upload an input file, which is read piece by piece."""

        async def send() -> str:
            import aiohttp

            form = aiohttp.FormData()
            form.add_field("purpose", "batch")
            with file.open("rb") as opened:
                form.add_field("file", opened, filename=file.name, content_type="application/jsonl")
                raw = await self._call("POST", "/files", data=form, timeout=_transfer())
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

        Args:
            created: When the batch was created at the earliest, in seconds since 1970.

        Returns:
            The batch; None if the list of batches does not have it.
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
        import aiohttp

        session, reader = self.session, LineReader()
        url = f"{self._endpoint.address}/files/{file}/content"
        try:
            async with session.get(url, allow_redirects=False, timeout=_transfer()) as reply:
                if reply.status // 100 != 2:
                    raw, _ = await read_body(reply)
                    raise self._error("GET", f"/files/{file}/content", reply, raw)
                async for piece in reply.content.iter_any():
                    for line in reader.lines(piece):
                        yield self._endpoint.hide_key(line)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise CallFailedError(self._broken(error)) from None
        if rest := reader.rest():
            yield self._endpoint.hide_key(rest)

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None, "used outside 'async with'"
        return self._session

    async def _call(
        self, method: str, path: str, timeout: aiohttp.ClientTimeout | None = None, **body: Any
    ) -> bytes:
        """Make a call; redirects are not followed: key and images go to the named address only."""
        import aiohttp

        url = self._endpoint.address + path
        limit = timeout or aiohttp.ClientTimeout(total=CALL_SECONDS, sock_connect=CONNECT_SECONDS)
        try:
            async with self.session.request(
                method, url, timeout=limit, allow_redirects=False, **body
            ) as reply:
                raw, _ = await read_body(reply)
                if reply.status // 100 != 2:
                    raise self._error(method, path, reply, raw)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise CallFailedError(self._broken(error)) from None
        return self._endpoint.hide_key(raw)

    def _broken(self, error: Exception) -> Failure:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        result = self._endpoint.redact(Failure("transient", f"{self._host}: {reason}"))
        assert isinstance(result, Failure)
        return result

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
        failure = failure_of_status(self._host, status, raw, reply.headers.get("Retry-After"))
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


def _transfer() -> aiohttp.ClientTimeout:
    """The time for a file of any size, as long as something arrives."""
    import aiohttp

    return aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)


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
