"""Fetches one image by its url: few redirects, limits on time and size, nothing decompressed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from msgspec import Struct, field
from yarl import URL

import sightline
from sightline.data.addresses import NotPublic, connector, onward, parse
from sightline.data.errors import DownloadError
from sightline.data.host_throttle import Host, Manners
from sightline.formats.stream import WholeFile
from sightline.images import MAX_BYTES
from sightline.models.reply import seconds_until

PIECE = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses that speak of the moment, not of the image."""


class Limits(Struct, frozen=True):
    """How long, how large, how often: seconds, bytes and counts.

    `silence` is how long a server may say nothing, `total` how long an image may take with its redirects;
    `attempts` are those at one image, `at_once` images.
    """

    connect: float = 15.0
    silence: float = 30.0
    total: float = 180.0
    bytes: int = MAX_BYTES
    redirects: int = 5
    attempts: int = 3
    at_once: int = 8
    manners: Manners = field(default_factory=Manners)


class Fetcher:
    """Fetches images by their urls, from public addresses only unless `private` ones are allowed too.

    A proxy that the environment names is not used: it would look names up itself, unchecked.
    """

    def __init__(self, limits: Limits, *, private: bool) -> None:
        self._limits, self._private = limits, private
        self._hosts: dict[str, Host] = {}

    async def __aenter__(self) -> Self:
        """Open a session."""
        self._session = aiohttp.ClientSession(
            connector=connector(self._private),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": f"sightline/{sightline.__version__}",
                "Accept": "image/*",
                # An image is compressed already. What comes compressed all the same is never unpacked.
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
        """Fetch what `url` leads to into `path`, whole or not at all; returns the media type it is given.

        Missed where it is not to be had, EnvironmentFailedError where the disk refuses.
        """
        attempts = self._limits.attempts
        while True:
            attempts -= 1
            try:
                return await self._follow(parse(url), path)
            except DownloadError as missed:
                if not missed.passing or not attempts:
                    raise

    async def _follow(self, target: URL, path: Path) -> str:
        """Fetch from `target` or from where its redirects lead; the host of each is asked as politely."""
        loop, left = asyncio.get_running_loop(), self._limits.total
        for _ in range(self._limits.redirects + 1):
            name = target.host or ""
            host = self._hosts.setdefault(name, Host(name, self._limits.manners))
            async with host.place():
                began = loop.time()
                found = await self._ask(host, target, path, left)
                # Zero would be no limit.
                left = max(0.001, left - (loop.time() - began))
            if isinstance(found, str):
                return found
            target = found
        raise DownloadError("too many redirects", f"more than {self._limits.redirects}, the last to {target}")

    async def _ask(self, host: Host, target: URL, path: Path, seconds: float) -> URL | str:
        """One call: where it leads on, or the media type of what is in `path` then."""
        timeout = aiohttp.ClientTimeout(
            total=seconds, sock_connect=self._limits.connect, sock_read=self._limits.silence
        )
        try:
            async with self._session.get(target, allow_redirects=False, timeout=timeout) as response:
                found = await self._read(target, response, path)
        except DownloadError as error:
            missed = error
        except (aiohttp.ClientError, OSError) as error:
            missed = self._told(error)
        else:
            host.answered()
            return found
        if missed.passing:
            host.failed(str(missed), missed.wait)
        else:
            host.answered()
        raise missed

    async def _read(self, target: URL, response: aiohttp.ClientResponse, path: Path) -> URL | str:
        if response.status in _REDIRECTS:
            return onward(target, response.headers.get("Location", ""))
        if response.status != 200:
            raise DownloadError(
                f"HTTP {response.status}",
                response.reason or "no word why",
                passing=response.status in _PASSING,
                wait=seconds_until(response.headers.get("Retry-After")),
            )
        coding = response.headers.get("Content-Encoding", "identity")
        if coding.strip().lower() not in ("", "identity"):
            raise DownloadError("compressed", f"sent as {coding}, which was not asked for")
        if (response.content_length or 0) > self._limits.bytes:
            raise DownloadError(
                "too large", f"{response.content_length:,} bytes, more than {self._limits.bytes:,}"
            )
        await self._store(response, path)
        return response.content_type

    async def _store(self, response: aiohttp.ClientResponse, path: Path) -> None:
        size = 0
        async with WholeFile(path) as file:
            async for piece in response.content.iter_chunked(PIECE):
                size += len(piece)
                if size > self._limits.bytes:
                    raise DownloadError("too large", f"more than {self._limits.bytes:,} bytes")
                file.write(piece)

    def _told(self, error: Exception) -> DownloadError:
        """What a failed call says of the image."""
        # Not every error of a connection has what it promises: that of a certificate lacks it.
        cause = getattr(error, "os_error", error)
        if isinstance(cause, NotPublic):
            return DownloadError("address refused", str(cause))
        if isinstance(error, aiohttp.InvalidURL):
            return DownloadError("address refused", f"this is no url: {error}")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return DownloadError(
                "timed out", f"no connection within {self._limits.connect:g} s", passing=True
            )
        if isinstance(error, aiohttp.SocketTimeoutError):
            return DownloadError("timed out", f"nothing came for {self._limits.silence:g} s", passing=True)
        if isinstance(error, TimeoutError):
            return DownloadError("timed out", f"not whole within {self._limits.total:g} s", passing=True)
        if isinstance(error, aiohttp.ClientSSLError):
            return DownloadError("no connection", f"no certificate to trust: {cause}")
        if isinstance(error, aiohttp.ClientConnectorError):
            return DownloadError("no connection", str(cause), passing=True)
        if isinstance(error, aiohttp.ClientResponseError):
            return DownloadError("no valid HTTP", error.message.partition("\n")[0])
        return DownloadError("connection broke", str(error) or type(error).__name__, passing=True)
