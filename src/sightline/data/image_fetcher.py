"""Fetches one image by its URL: few redirects, limits on time and size, no decompression."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from msgspec import Struct, field
from yarl import URL

import sightline
from sightline.data.download_error import DownloadError
from sightline.data.host_throttle import HostLimits, HostThrottle
from sightline.data.url_safety import RefusedAddressError, parse_url, redirect_target, safe_connector
from sightline.formats.atomic_file import AtomicFile
from sightline.images import MAX_BYTES
from sightline.models.chat_response import seconds_until

PIECE = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_RETRYABLE = (408, 425, 429, 500, 502, 503, 504)
"""HTTP statuses of temporary failures."""
_LEAST_SECONDS = 0.001


class FetchLimits(Struct, frozen=True):
    """Limits on image downloads, in seconds, bytes and counts.

    `read` is the longest wait for data, `total` the longest time of all requests for one image, with its
    redirects and further attempts. Pauses between them do not count.
    `attempts` counts per image; `concurrency` is the number of images at a time, over all hosts.
    """

    connect: float = 15.0
    read: float = 30.0
    total: float = 60.0
    bytes: int = MAX_BYTES
    redirects: int = 5
    attempts: int = 3
    concurrency: int = 8
    host: HostLimits = field(default_factory=HostLimits)


class ImageFetcher:
    """Fetches images by URL.

    Proxies of the environment are not used: they would resolve host names themselves, without any check.
    """

    def __init__(self, limits: FetchLimits, *, allow_private: bool) -> None:
        self._limits, self._allow_private = limits, allow_private
        self._throttles: dict[str, HostThrottle] = {}

    async def __aenter__(self) -> Self:
        """Open the session."""
        self._session = aiohttp.ClientSession(
            connector=safe_connector(allow_private=self._allow_private),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": f"sightline/{sightline.__version__}",
                "Accept": "image/*",
                # Images are compressed already. A response that is compressed all the same is not unpacked.
                "Accept-Encoding": "identity",
            },
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        await self._session.close()

    async def fetch(self, url: str, path: Path) -> str:
        """Fetch a URL into a file, completely or not at all."""
        clock = _Clock(self._limits.total)
        for left in reversed(range(self._limits.attempts)):
            try:
                return await self._follow(parse_url(url), path, clock)
            except DownloadError as error:
                if not (error.retryable and left) or clock.is_over:
                    raise
        raise ValueError("no attempt is allowed")

    async def _follow(self, target: URL, path: Path, clock: _Clock) -> str:
        """Request a URL and follow its redirects; the host of each redirect is throttled too."""
        for _ in range(self._limits.redirects + 1):
            host = target.host or ""
            throttle = self._throttles.setdefault(host, HostThrottle(host, self._limits.host))
            async with throttle.slot():
                with clock.running():
                    result = await self._request(throttle, target, path, clock.seconds)
            if isinstance(result, str):
                return result
            target = result
        raise DownloadError("too many redirects", f"more than {self._limits.redirects}, the last to {target}")

    async def _request(self, throttle: HostThrottle, target: URL, path: Path, seconds: float) -> URL | str:
        """Send one request: returns the target of a redirect, or the media type of the file at `path`."""
        timeout = aiohttp.ClientTimeout(
            total=seconds, sock_connect=self._limits.connect, sock_read=self._limits.read
        )
        try:
            async with self._session.get(target, allow_redirects=False, timeout=timeout) as response:
                result = await self._read(target, response, path)
        except DownloadError as error:
            failure = error
        except (aiohttp.ClientError, OSError) as error:
            failure = self._connection_failure(error)
        else:
            throttle.record_success()
            return result
        if failure.retryable:
            throttle.record_failure(str(failure), failure.wait)
        else:
            throttle.record_success()
        if failure.wait is not None and not throttle.accepts(failure.wait):
            failure = DownloadError(failure.reason, f"the server asks for a pause of {failure.wait:,.0f} s")
        raise failure

    async def _read(self, target: URL, response: aiohttp.ClientResponse, path: Path) -> URL | str:
        if response.status in _REDIRECTS:
            return redirect_target(target, response.headers.get("Location", ""))
        if response.status != 200:
            raise DownloadError(
                f"HTTP {response.status}",
                response.reason or "no reason given",
                retryable=response.status in _RETRYABLE,
                wait=seconds_until(response.headers.get("Retry-After")),
            )
        coding = response.headers.get("Content-Encoding", "identity")
        if coding.strip().lower() not in ("", "identity"):
            raise DownloadError("compressed", f"sent as {coding}, which was not requested")
        if (response.content_length or 0) > self._limits.bytes:
            raise DownloadError(
                "too large", f"{response.content_length:,} bytes, more than {self._limits.bytes:,}"
            )
        await self._store(response, path)
        return response.content_type

    async def _store(self, response: aiohttp.ClientResponse, path: Path) -> None:
        size = 0
        async with AtomicFile(path) as file:
            async for piece in response.content.iter_chunked(PIECE):
                size += len(piece)
                if size > self._limits.bytes:
                    raise DownloadError("too large", f"more than {self._limits.bytes:,} bytes")
                file.write(piece)

    def _connection_failure(self, error: Exception) -> DownloadError:
        """Translate an error of the HTTP client."""
        # Certificate errors lack the attribute that other connection errors have.
        cause = getattr(error, "os_error", error)
        if isinstance(cause, RefusedAddressError):
            return DownloadError("URL refused", str(cause))
        if isinstance(error, aiohttp.InvalidURL):
            return DownloadError("URL refused", f"this is not a URL: {error}")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return DownloadError(
                "timed out", f"no connection within {self._limits.connect:g} s", retryable=True
            )
        if isinstance(error, aiohttp.SocketTimeoutError):
            return DownloadError("timed out", f"no data for {self._limits.read:g} s", retryable=True)
        if isinstance(error, TimeoutError):
            return DownloadError("timed out", f"not complete within {self._limits.total:g} s", retryable=True)
        if isinstance(error, aiohttp.ClientSSLError):
            return DownloadError("no connection", f"untrusted certificate: {cause}")
        if isinstance(error, aiohttp.ClientConnectorError):
            return DownloadError("no connection", str(cause), retryable=True)
        if isinstance(error, aiohttp.ClientResponseError):
            return DownloadError("invalid HTTP", error.message.partition("\n")[0])
        return DownloadError("connection broken", str(error) or type(error).__name__, retryable=True)


class _Clock:
    """The time that is left for the requests for one image, in seconds.

    It is never 0, which aiohttp takes for no limit.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.seconds <= _LEAST_SECONDS

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of a block."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds = max(_LEAST_SECONDS, self.seconds - (time.monotonic() - began))
