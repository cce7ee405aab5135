"""The HTTP client: calls one server, of a model, of batches or of downloads, with limits on size and time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from sightline import __version__
from sightline.errors import UserError

if TYPE_CHECKING:
    # aiohttp is imported by the first client: many commands call no server.
    import aiohttp

MAX_BYTES = 16 * 1024**2
"""The most bytes of a reply, decompressed. 100,000 tokens have 0.5 MB, with log-probabilities 10 MB."""
STREAM_FACTOR = 4
"""An event stream may have so many times more bytes: each token is an event of some 300 bytes."""

IDLE_SECONDS = 4.0
"""How long an idle connection is kept. Servers close it after 5 s (uvicorn, so vLLM and SGLang)."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Timeouts(Struct, frozen=True):
    """How long calls may take.

    Attributes:
        total: Seconds from the start of a call to the last byte of its reply; None for no limit.
        connect: Seconds until a connection is open, with TLS.
        silence: Seconds in which nothing arrives; None for no limit.
    """

    total: float | None
    connect: float
    silence: float | None = None


class Reply(Struct, frozen=True):
    """What a server replied: `headers` by names in lower case, `body` decompressed and cut at `MAX_BYTES`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool


class CallError(Exception):
    """A call has no reply: no connection, a connection that was lost, or a reply that is no HTTP.

    Another call may succeed. `cause` is the error of the system or of aiohttp, if there is one.
    """

    def __init__(self, message: str, cause: Exception | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class NoAnswerError(CallError):
    """A call took longer than its total time."""


class HTTPClient:
    """Calls one server, over as many connections as there are calls at a time.

    Redirects are not followed: key and images go to the named server only. Belongs to one event loop.
    """

    def __init__(
        self,
        address: str,
        key: str | None,
        timeouts: Timeouts,
        *,
        key_header: Literal["Authorization", "api-key"] = "Authorization",
        proxy: str | None = None,
        connector: aiohttp.BaseConnector | None = None,
        decompress: bool = True,
    ) -> None:
        """Open a client; nothing is sent, and no connection is made.

        Args:
            key: The key that goes with each call; None for none.
            key_header: The header that holds the key; `Authorization` as a bearer token.
            proxy: URL of a proxy; None for none.
            connector: Makes the connections; None for one that connects to every host.
            decompress: Whether bodies of replies are decompressed.
        """
        import aiohttp

        # A control character in a header could end it and start another one.
        if _CONTROL.search(address):
            raise UserError("the URL of a server contains a control character", found=address)
        if key is not None and _CONTROL.search(key):
            # The message does not repeat the key.
            raise UserError(
                f"the API key for {urlsplit(address).netloc} contains a control character",
                expected="a key on one line",
            )
        if proxy is not None and (scheme := urlsplit(proxy).scheme) not in ("http", "https"):
            raise UserError(
                f"the proxy for {urlsplit(address).netloc} is of another kind than Sightline can use",
                found=f"{scheme}://...",
                expected="the URL of an HTTP proxy, or the host in the variable no_proxy",
            )
        credentials: dict[str, str] = {}
        if key:
            credentials[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
        self._address = address
        self._timeouts = timeouts
        self._session = aiohttp.ClientSession(
            connector=connector
            or aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=IDLE_SECONDS,
                # A host's addresses are tried one by one: else, a cancelled call can leave a socket open.
                happy_eyeballs_delay=None,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": f"sightline/{__version__}",
                "Accept-Encoding": "identity",
                **credentials,
            },
            proxy=proxy,
            # Neither keys of ~/.netrc nor other proxies.
            trust_env=False,
            auto_decompress=decompress,
        )

    async def call(self, path: str, body: bytes | None = None, *, total: float | None = None) -> Reply:
        """Make one call.

        Args:
            body: JSON to post; None for GET.
            total: Seconds that this call may take; None: the limit of the client.
        """
        timeouts = self._timeouts if total is None else Timeouts(total, self._timeouts.connect)
        content = {} if body is None else {"data": body, "headers": {"Content-Type": "application/json"}}
        async with self.request("GET" if body is None else "POST", path, timeouts, **content) as response:
            raw, is_whole = await read_body(response)
        headers: dict[str, str] = {}
        for name, value in response.headers.items():
            headers.setdefault(name.lower(), value)
        return Reply(response.status, headers, raw, is_whole)

    @asynccontextmanager
    async def request(
        self, method: str, path: str, timeouts: Timeouts | None = None, **content: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Make a call whose body is read inside the context, in pieces; what fails there is a CallError too.

        `content` are the arguments of aiohttp for what is sent.
        """
        import aiohttp

        limits = timeouts or self._timeouts
        timeout = aiohttp.ClientTimeout(
            total=limits.total, sock_connect=limits.connect, sock_read=limits.silence
        )
        if self._session.closed:
            raise CallError("the client is closed")
        try:
            async with self._session.request(
                method, self._address + path, timeout=timeout, allow_redirects=False, **content
            ) as response:
                yield response
        except aiohttp.ConnectionTimeoutError:
            raise CallError(f"no connection within {limits.connect:g} s") from None
        except aiohttp.SocketTimeoutError:
            raise NoAnswerError(f"no data for {limits.silence:g} s") from None
        except TimeoutError as error:
            if limits.total is None or error.errno is not None:  # the system's, not the limit of the call
                raise _broken(error) from None
            raise NoAnswerError(f"no answer within {limits.total:g} s") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:  # UnicodeError: no name of a host
            raise _broken(error) from None

    async def aclose(self) -> None:
        """Close all connections; calls that are not complete fail."""
        await self._session.close()


async def read_body(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """Read the body of a reply as far as the limit allows.

    Returns at most the first `MAX_BYTES` bytes, of an event stream `STREAM_FACTOR` times as many, and whether
    this is the whole body. The rest is not received.
    """
    limit = MAX_BYTES * (STREAM_FACTOR if response.content_type == "text/event-stream" else 1)
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limit:
            del body[limit:]
            return bytes(body), False
    return bytes(body), True


def environment_proxy(address: str) -> str | None:
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(address)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _broken(error: Exception) -> CallError:
    import aiohttp
    from aiohttp import http_exceptions

    # A reply is either no HTTP or cut off; aiohttp's texts have several lines with the bytes.
    cause = error.__cause__ if isinstance(error, aiohttp.ClientPayloadError) else error
    if isinstance(cause, aiohttp.ServerDisconnectedError | http_exceptions.ContentLengthError):
        return CallError("the server closed the connection before its reply was complete")
    if isinstance(cause, aiohttp.ClientResponseError | http_exceptions.HttpProcessingError):
        return CallError(f"the reply cannot be read: {' '.join(cause.message.split())}")
    where = "no connection to the proxy: " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
    cause = getattr(error, "os_error", getattr(error, "certificate_error", error))
    text = f"{where}{type(cause).__name__}: {cause}".rstrip(": ")
    return CallError(text, cause)
