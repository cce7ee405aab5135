"""Fetches one image by its URL: few redirects, limits on time and size, no decompression."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver
from msgspec import Struct, field
from yarl import URL

from sightline.errors import visible
from sightline.formats.files import AtomicFile
from sightline.images import MAX_BYTES
from sightline.models.chat import seconds_until
from sightline.models.http_client import CallError, HTTPClient, NoAnswerError, Timeouts

# -- Limits the load on each host: a few requests at a time, pauses after failures, and a stop after many


class HostLimits(Struct, frozen=True):
    """How many requests one host gets, and how long the pauses between them are.

    After a failure of the host (429, 5xx, a failed connection) no request starts for `pause` seconds, or for
    as long as the host asks, up to `max_pause` seconds. A host that fails `max_failures` times in a row gets
    no further request.
    """

    concurrency: int = 4
    pause: float = 2.0
    max_pause: float = 60.0
    max_failures: int = 12


class HostThrottle:
    """Throttles the requests to one host. Belongs to one event loop.

    The concurrency is fixed. The engine's limiter looks for the most that a server can take, which is right
    for a model's server, but not for the web servers of third parties.
    """

    def __init__(self, host: str, limits: HostLimits) -> None:
        self._host, self._limits = host, limits
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._paused_until = 0.0
        self._failures = 0
        self._stop_reason = ""

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free slot and hold it during one request."""
        async with self._slots:
            loop = asyncio.get_running_loop()
            while not self._stop_reason and (pause := self._paused_until - loop.time()) > 0:
                await asyncio.sleep(pause)
            if self._stop_reason:
                raise DownloadError("host given up", f"{self._host} {self._stop_reason}")
            yield

    def record_success(self) -> None:
        """Record that the host answered, with an image or with an error about that image."""
        self._failures = 0

    def record_failure(self, reason: str, wait: float | None) -> None:
        """Record a failure of the host itself, with the pause in seconds that it asked for."""
        self._failures += 1
        pause = wait if wait is not None and self.accepts(wait) else 0.0
        if not self._stop_reason and self._failures >= self._limits.max_failures:
            self._stop_reason = f"failed {self._failures} times in a row, the last time: {reason}"
        paused_until = asyncio.get_running_loop().time() + max(pause, self._limits.pause)
        self._paused_until = max(self._paused_until, paused_until)

    def accepts(self, wait: float) -> bool:
        """Decide whether to wait as many seconds as a host asks; if not, only that URL's image fails."""
        return wait <= self._limits.max_pause


PIECE = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_RETRYABLE = (408, 425, 429, 500, 502, 503, 504)
"""HTTP statuses of temporary failures."""
_HEADERS = {"Accept": "image/*"}


class FetchLimits(Struct, frozen=True):
    """Limits on image downloads, in seconds, bytes and counts.

    `read` is the longest wait for data, `total` the longest time of one request. `attempts` counts per image,
    `concurrency` is the number of images at a time, over all hosts.
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
    """Fetches images by URL, without the environment's proxies: they resolve names without any check."""

    def __init__(self, limits: FetchLimits, *, allow_private: bool) -> None:
        self._limits = limits
        # Images are compressed already. A response that is compressed all the same is not unpacked.
        self._client = HTTPClient(
            "",
            None,
            Timeouts(limits.total, limits.connect, limits.read),
            connector=safe_connector(allow_private=allow_private),
            decompress=False,
        )
        self._throttles: dict[str, HostThrottle] = {}

    async def aclose(self) -> None:
        await self._client.aclose()

    async def fetch(self, url: str, path: Path) -> str:
        """Fetch a URL into a file, completely or not at all; returns the media type that the server names."""
        for left in reversed(range(self._limits.attempts)):
            try:
                return await self._follow(parse_url(url), path)
            except DownloadError as error:
                if not (error.retryable and left):
                    raise
        raise ValueError("no attempt is allowed")

    async def _follow(self, target: URL, path: Path) -> str:
        """Request a URL and follow its redirects; the host of each redirect is throttled too."""
        for _ in range(self._limits.redirects + 1):
            host = target.host or ""
            throttle = self._throttles.setdefault(host, HostThrottle(host, self._limits.host))
            async with throttle.slot():
                result = await self._request(throttle, target, path)
            if isinstance(result, str):
                return result
            target = result
        raise DownloadError("too many redirects", f"more than {self._limits.redirects}, the last to {target}")

    async def _request(self, throttle: HostThrottle, target: URL, path: Path) -> URL | str:
        """Send one request: returns the target of a redirect, or the media type of the file at `path`."""
        try:
            async with self._client.request("GET", str(target), headers=_HEADERS) as response:
                result = await self._read(target, response, path)
        except DownloadError as error:
            failure = error
        except CallError as error:
            failure = _failure(error)
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


def _failure(error: CallError) -> DownloadError:
    if isinstance(error.cause, RefusedAddressError | aiohttp.InvalidURL):
        return DownloadError("URL refused", str(error.cause))
    reason = "timed out" if isinstance(error, NoAnswerError) else "connection failed"
    return DownloadError(reason, str(error), retryable=True)


# -- Restricts which URLs are downloaded: http and https, and public hosts unless private ones are allowed

SCHEMES = ("http", "https")

# Link-local addresses, and others where clouds serve metadata and credentials: Azure, Alibaba Cloud, Oracle
# Cloud, then by IPv6 AWS, Google Cloud and Oracle Cloud.
_NEVER: tuple[tuple[IPv4Network | IPv6Network, str], ...] = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("169.254.0.0/16", "link-local"),
        ("fe80::/10", "link-local"),
        ("168.63.129.16/32", "metadata of a cloud"),
        ("100.100.100.200/32", "metadata of a cloud"),
        ("192.0.0.192/32", "metadata of a cloud"),
        ("fd00:ec2::/32", "metadata of a cloud"),
        ("fd20:ce::254/128", "metadata of a cloud"),
        ("fd00:c1::a9fe:a9fe/128", "metadata of a cloud"),
    )
)

# The IANA registries of special-purpose addresses (RFC 6890). For IPv6, hosts get addresses of 2000::/3 only
# (RFC 4291). This excludes loopback, unique local, multicast, IPv4-mapped and NAT64 addresses without a line
# for each.
_NOT_PUBLIC: tuple[tuple[IPv4Network | IPv6Network, str], ...] = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("2001::/23", "reserved, includes Teredo"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
    )
)
_UNICAST = IPv6Network("2000::/3")


class RefusedAddressError(OSError):
    """An IP address that nothing is downloaded from; the text says which and why."""


def check_address(address: str, *, allow_private: bool = False) -> None:
    """Check that something may be downloaded from an IP address.

    >>> check_address("93.184.215.14")
    >>> check_address("10.0.0.1")
    Traceback (most recent call last):
    sightline.data.image_fetcher.RefusedAddressError: 10.0.0.1 is not a public address (private)
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        # Sockets also accept 127.1 and 2130706433, which only an attacker writes.
        raise RefusedAddressError(f"{address} is not an IP address in its usual form") from None
    for one in (parsed, *_contained(parsed)):
        for network, kind in _NEVER:
            if one in network:
                raise RefusedAddressError(f"{address} is refused, also with --allow-private ({kind})")
    if allow_private:
        return
    for network, kind in _NOT_PUBLIC:
        if parsed in network:
            raise RefusedAddressError(f"{address} is not a public address ({kind})")
    if parsed.version == 6 and parsed not in _UNICAST:
        raise RefusedAddressError(f"{address} is not a public address (outside {_UNICAST})")


def _contained(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address may lead to."""
    if address.version == 4:
        return []
    if address.teredo is not None:
        return list(address.teredo)
    if address.sixtofour is not None:
        return [address.sixtofour]
    # IPv4-mapped, IPv4-compatible, NAT64 and ISATAP addresses end with it.
    return [] if address in _UNICAST else [IPv4Address(int(address) & 0xFFFFFFFF)]


def parse_url(text: str) -> URL:
    """Parse a URL and check its scheme."""
    try:
        parsed = URL(text)
        host = parsed.host
    except ValueError as error:
        raise DownloadError("URL refused", f"this is not a URL: {error}") from None
    if parsed.scheme not in SCHEMES:
        raise DownloadError("URL refused", f"{parsed.scheme or 'no scheme'} is not http or https")
    if not host:
        raise DownloadError("URL refused", "it has no host")
    return parsed.with_fragment(None)


def redirect_target(url: URL, location: str) -> URL:
    """Resolve a redirect.

    >>> redirect_target(URL("https://h/a/b.jpg"), "../c.jpg")
    URL('https://h/c.jpg')
    """
    if not location:
        raise DownloadError("URL refused", "a redirect without a Location header")
    try:
        target = url.join(URL(location))
    except ValueError as error:
        raise DownloadError("URL refused", f"a redirect to an invalid URL: {error}") from None
    target = parse_url(str(target))
    if url.scheme == "https" and target.scheme != "https":
        raise DownloadError("URL refused", f"a redirect from https to {target}")
    return target


def safe_connector(*, allow_private: bool) -> aiohttp.TCPConnector:
    """Create the connector of an HTTP session.

    Host names are resolved when a connection is made, and all addresses of a name must be accepted. The
    socket checks its address again, because an address that is written in the URL is never resolved.
    """
    check = partial(check_address, allow_private=allow_private)
    return aiohttp.TCPConnector(
        limit=0, resolver=_CheckedResolver(check), socket_factory=partial(_checked_socket, check)
    )


class _CheckedResolver(ThreadedResolver):
    """Resolves host names, and refuses a name with any address that does not pass a check."""

    def __init__(self, check: Callable[[str], None]) -> None:
        super().__init__()
        self._check = check

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Resolve a name; raises RefusedAddressError."""
        results = await super().resolve(host, port, family)
        for result in results:
            self._check(result["host"])
        return results


def _checked_socket(check: Callable[[str], None], info: tuple[Any, ...]) -> socket.socket:
    """Create a socket for a result of `socket.getaddrinfo`; raises RefusedAddressError."""
    family, kind, protocol, _, address = info
    check(str(address[0]))
    return socket.socket(family, kind, protocol)


# -- The error of a failed image download

MAX_DETAIL = 300
"""The most characters of an error's detail."""


class DownloadError(Exception):
    """A failed image download: the `reason` in a few words, by which failures are counted, and the `detail`.

    `retryable` means that another attempt may succeed, after `wait` seconds if the server gave a time. A
    detail may contain text from a server, so it is cut and shown in one line.
    """

    def __init__(
        self, reason: str, detail: str, *, retryable: bool = False, wait: float | None = None
    ) -> None:
        self.reason, self.retryable, self.wait = reason, retryable, wait
        self.detail = visible(detail[:MAX_DETAIL])
        super().__init__(f"{reason}: {self.detail}")
