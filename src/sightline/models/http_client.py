"""HTTP clients for a model's server: a direct one on the transports of asyncio, and one for proxies."""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import quote, urlsplit

import httptools
from msgspec import Struct

from sightline import __version__
from sightline.errors import UserError
from sightline.models import chat
from sightline.models.chat import read_body

if TYPE_CHECKING:
    import aiohttp


def open_client(
    address: str,
    key: str | None,
    timeouts: Timeouts,
    *,
    proxy: str | None = None,
    uses_environment_proxy: bool = False,
) -> HTTPClient:
    """Open a client; nothing is sent, and no connection is made.

    Args:
        key: The key that goes with each call; None for none.
        proxy: URL of a proxy; None: the environment decides.
    """
    target = Target(address, key)
    if proxy is None and not (uses_environment_proxy and has_environment_proxy(address)):
        return DirectClient(target, timeouts)
    return ProxiedClient(target, timeouts, proxy)


def has_environment_proxy(address: str) -> bool:
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(address)
    return bool(getproxies().get(parts.scheme)) and not proxy_bypass(parts.hostname or "")


# -- What a call of an HTTP server takes and returns, and how it fails


class Timeouts(Struct, frozen=True):
    """How long calls may take.

    Attributes:
        total: Seconds from the start of a call to the last byte of its reply; None for no limit.
        connect: Seconds until a connection is open, with TLS.
    """

    total: float | None
    connect: float


class Reply(Struct, frozen=True):
    """What a server replied; `body` is decompressed and cut at `chat.MAX_BYTES` bytes."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool


class CallError(Exception):
    """A call has no reply: no connection, a connection that was lost, or a reply that is no HTTP.

    Another call may succeed. `errno` is the number of the system's error, if one is the cause.
    """

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class NoAnswerError(CallError):
    """A call took longer than its total time."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__(f"no answer within {seconds:g} s" if seconds is not None else "no answer in time")


def no_connection(seconds: float) -> CallError:
    """The error where a connection takes too long."""
    return CallError(f"no connection within {seconds:g} s")


def broken(error: Exception) -> CallError:
    return CallError(f"{type(error).__name__}: {error}".rstrip(": "), getattr(error, "errno", None))


class HTTPClient(Protocol):
    """Calls one server. Belongs to one event loop; the number of calls at a time is the caller's choice."""

    async def call(self, path: str, body: bytes | None = None, *, total: float | None = None) -> Reply:
        """Make one call. Redirects are not followed: key and images go to the named server only.

        Args:
            body: JSON to post; None for GET.
            total: Seconds that this call may take; None: the limit of the client.
        """

    async def aclose(self) -> None:
        """Close all connections; calls that are not complete fail."""


# -- The server that calls go to, and the heads of their requests

USER_AGENT = f"sightline/{__version__}"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SAFE_IN_PATH = "/%:@!$&'()*+,;="


class Target:
    """A server with its key, and what each request to it says.

    A control character in a header could end it and start another one, so that none is accepted.
    """

    def __init__(self, address: str, key: str | None) -> None:
        """Read the address."""
        if _CONTROL.search(address):
            raise UserError("the URL of a server contains a control character", found=address)
        parts = urlsplit(address)
        self.address = address
        self.hostname = parts.hostname or ""
        self.is_tls = parts.scheme == "https"
        default_port = 443 if self.is_tls else 80
        self.port = parts.port or default_port
        if key is not None and _CONTROL.search(key):
            # The message does not repeat the key.
            raise UserError(
                f"the API key for {self.hostname}:{self.port} contains a control character",
                expected="a key on one line",
            )
        self.headers = {"User-Agent": USER_AGENT, **({"Authorization": f"Bearer {key}"} if key else {})}
        self._path = parts.path
        host = _host_header(self.hostname, None if self.port == default_port else self.port)
        fields = {"Host": host, "Accept": "*/*", **self.headers}
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()

    def head(self, path: str, body: bytes | None) -> bytes:
        """The head of a POST of JSON or a GET; ValueError if the path contains a control character."""
        if _CONTROL.search(path):
            raise ValueError("a path contains a control character")
        target = quote(self._path + path, safe=_SAFE_IN_PATH).encode()
        if body is None:
            return b"GET %b HTTP/1.1\r\n%b\r\n" % (target, self._fields)
        return b"POST %b HTTP/1.1\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
            target,
            self._fields,
            len(body),
        )


def _host_header(hostname: str, port: int | None) -> str:
    name = hostname if hostname.isascii() else hostname.encode("idna").decode()
    name = f"[{name}]" if ":" in name else name
    return name if port is None else f"{name}:{port}"


# -- A client that calls a server without a proxy: HTTP/1.1 on the transports of asyncio

IDLE_SECONDS = 4.0
"""How long an idle connection is kept. Servers close it after 5 s (uvicorn, so vLLM and SGLang)."""


class DirectClient:
    """Calls one server over as many connections as there are calls at a time, and keeps them a while."""

    def __init__(self, target: Target, timeouts: Timeouts) -> None:
        self._target = target
        self._timeouts = timeouts
        self._tls: ssl.SSLContext | None = None
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._is_closed = False

    async def call(self, path: str, body: bytes | None = None, *, total: float | None = None) -> Reply:
        head = self._target.head(path, body)
        seconds = self._timeouts.total if total is None else total
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange([head] if body is None else [head, body])
        except TimeoutError:
            raise NoAnswerError(seconds) from None

    async def aclose(self) -> None:
        """Close all connections and wait until they are closed; calls that are not complete fail."""
        self._is_closed = True
        for connection in list(self._open):
            connection.abort()
        # The event loop closes them in its next one or two steps.
        while self._open:
            await asyncio.sleep(0)

    async def _exchange(self, request: list[bytes]) -> Reply:
        """Send a request over an idle connection, or over a new one.

        The server may close an idle connection just as it is used. A GET is sent again then. A POST is not,
        as with aiohttp: the server may have begun to answer, and the caller decides whether to pay again.
        """
        if (idle := self._take_idle()) is not None:
            try:
                return await self._reply(idle, request)
            except CallError:
                if idle.has_received or len(request) > 1:
                    raise
        return await self._reply(await self._connect(), request)

    async def _reply(self, connection: Connection, request: list[bytes]) -> Reply:
        reply = await connection.exchange(request)
        if connection.can_continue and not self._is_closed:
            connection.rest(IDLE_SECONDS)
            self._idle.append(connection)
        else:
            connection.abort()
        return reply

    def _take_idle(self) -> Connection | None:
        """The connection that was used last: the others can close."""
        while self._idle:
            connection = self._idle.pop()
            connection.wake()
            if connection.can_continue:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        if self._is_closed:
            raise CallError("the client is closed")
        target, loop = self._target, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeouts.connect) as limit:
                _, connection = await loop.create_connection(
                    lambda: Connection(self._open.add, self._forget),
                    target.hostname,
                    target.port,
                    ssl=self._tls_context() if target.is_tls else None,
                    # The IP addresses of a host are tried one after the other: where asyncio tries them at a
                    # time (`happy_eyeballs_delay`), a cancelled call can leave an open socket behind.
                )
        except (OSError, UnicodeError) as error:  # UnicodeError: a part of the name is too long.
            raise (no_connection(self._timeouts.connect) if limit.expired() else broken(error)) from None
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        """Verify certificates and host names."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)


# -- One connection to a server, which carries one call at a time


class Connection(asyncio.Protocol):
    """One connection. What ends a call early closes it, so that no call reads the reply of another."""

    def __init__(self, opened: Callable[[Connection], None], lost: Callable[[Connection], None]) -> None:
        self._opened = opened
        self._lost = lost
        self._reader = ReplyReader()
        self._waiter: asyncio.Future[Reply] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self.has_received = False
        """Whether the server has sent something since the last call began."""

    @property
    def can_continue(self) -> bool:
        """Whether another call may follow: not if the server replied before the whole body was sent."""
        return (
            self._reader.can_continue
            and not self._transport.is_closing()
            and self._transport.get_write_buffer_size() == 0
        )

    async def exchange(self, request: Sequence[bytes]) -> Reply:
        if self._transport.is_closing():
            raise CallError("the server closed the connection")
        self.has_received = False
        self._reader.start()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            self._transport.writelines(request)
            return await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None

    def rest(self, seconds: float) -> None:
        self._idle_timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def wake(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def abort(self) -> None:
        """Close the connection without sending what is left."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        self.has_received = True
        if self._waiter is None or self._waiter.done():
            # No call waits for this: it cannot be told what it belongs to.
            self.abort()
            return
        try:
            self._reader.feed(data)
        except CallError as error:
            self._waiter.set_exception(error)
            self.abort()
            return
        if self._reader.reply is not None:
            self._waiter.set_result(self._reader.reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.wake()
        if self._waiter is not None and not self._waiter.done():
            if exc is None:
                self._reader.end()
            if self._reader.reply is not None:
                self._waiter.set_result(self._reader.reply)
            else:
                closed = CallError("the server closed the connection before its reply was complete")
                self._waiter.set_exception(closed if exc is None else broken(exc))
        self._reader.close()
        self._lost(self)


# -- Reads the replies of one connection from their bytes, with limits on what a server may send

MAX_HEAD_BYTES = 64 * 1024
"""The most bytes of all header fields of a reply, with those of the interim replies before it."""

_FRAMING_PER_BYTE = 16
"""The most bytes that divide the body into chunks, for each byte of the body."""


class ReplyReader:
    """Reads one reply after the other; `start`, `feed` and `end` say where they begin and end.

    `reply` is the reply as soon as it is complete, and `can_continue` whether another one may follow it.
    httptools calls the methods `on_...`.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.can_continue = True
        self.start()

    def start(self) -> None:
        self.reply: Reply | None = None
        self._headers: dict[str, str] = {}
        self._has_headers = self._is_until_end = False
        self._decoder: Decoder | None = None
        self._pieces: list[bytes] = []
        self._size = self._on_wire = self._framing = self._head_bytes = 0
        self._problem = ""

    def feed(self, data: bytes) -> None:
        before = self._on_wire
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            # A method of this class was ended by Ctrl-C or failed: httptools hides why.
            raise (error.__context__ or error) from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # What follows a complete reply does not make it worse.
            self.can_continue = False
            self._problem = self._problem or f"not HTTP: {error}"
        self._framing += len(data) - (self._on_wire - before)
        if self._framing > MAX_HEAD_BYTES + _FRAMING_PER_BYTE * self._on_wire:
            # Also what httptools still holds: a line without an end, or fields after the last chunk.
            self._fail(f"its headers are larger than {MAX_HEAD_BYTES:,} bytes")
        if self._problem and self.reply is None:
            raise CallError(f"the reply cannot be read: {self._problem}")

    def end(self) -> None:
        """The server has closed the connection, which is the end of a reply that does not give its length."""
        if self.reply is None and self._has_headers and self._is_until_end and not self._problem:
            self._finish()

    def close(self) -> None:
        """Forget the parser, which refers to this object: no garbage collection is needed then."""
        del self._parser

    def on_message_begin(self) -> None:
        if self.reply is not None:
            self.can_continue = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field, or one after the last chunk, which is ignored."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._fail(f"its headers are larger than {MAX_HEAD_BYTES:,} bytes")
        elif not self._has_headers:
            self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        if self.reply is not None or self._parser.get_status_code() < 200:
            return
        self._has_headers = True
        transfer = self._headers.get("transfer-encoding")
        if transfer is not None and transfer.lower() != "chunked":
            self._fail(f"its Transfer-Encoding is {transfer[:40]!r}, and only 'chunked' is supported")
        self._is_until_end = transfer is None and "content-length" not in self._headers
        coding = self._headers.get("content-encoding", "identity").lower()
        if coding not in ("", "identity"):
            try:
                self._decoder = Decoder(coding)
            except ValueError as error:
                self._fail(str(error))

    def on_body(self, piece: bytes) -> None:
        if not self._has_headers:
            return  # The body of an interim reply, which counts as framing.
        self._on_wire += len(piece)
        if self.reply is not None or self._problem:
            return
        left = chat.MAX_BYTES - self._size
        if self._decoder is not None:
            try:
                piece = self._decoder.decode(piece, left + 1)
            except ValueError as error:
                self._fail(str(error))
                return
        if len(piece) > left:
            self._pieces.append(piece[:left])
            self.can_continue = False
            self._set_reply(is_whole=False)
            return
        self._pieces.append(piece)
        self._size += len(piece)

    def on_message_complete(self) -> None:
        """A reply is complete, or an interim one (1xx), which is ignored."""
        if self.reply is not None or self._problem:
            return
        if not self._has_headers:
            self._headers.clear()
            return
        if not self._parser.should_keep_alive():
            self.can_continue = False
        self._finish()

    def _finish(self) -> None:
        if self._decoder is not None:
            try:
                self._decoder.finish()
            except ValueError as error:
                self._fail(str(error))
                return
        self._set_reply(is_whole=True)

    def _set_reply(self, *, is_whole: bool) -> None:
        body = b"".join(self._pieces)
        self._pieces.clear()
        self.reply = Reply(self._parser.get_status_code(), self._headers, body, is_whole)

    def _fail(self, problem: str) -> None:
        """Note why there is no reply: `feed` raises it, because httptools would hide an exception."""
        self.can_continue = False
        self._problem = self._problem or problem


# -- Decompresses the bodies of servers that compress although they were not asked to


class Decoder:
    """Decompresses one body as it arrives, and never more of it than is asked for."""

    def __init__(self, coding: str) -> None:
        """Prepare it. Raises ValueError: the coding is neither gzip nor deflate."""
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise ValueError(f"it is compressed with {coding[:40]!r}, which is not supported")
        self._is_deflate = coding == "deflate"
        self._stream: zlib._Decompress | None = None

    def decode(self, piece: bytes, most: int) -> bytes:
        """Decompress a piece.

        `most`: the most bytes to return. What would exceed them is lost: the caller has reached its limit.
        Raises ValueError: the piece is invalid.
        """
        if self._stream is None:
            # Some servers send deflate without the header of zlib, whose first byte ends in 8.
            is_raw = self._is_deflate and piece[0] & 0xF != 8
            self._stream = zlib.decompressobj(
                -zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS + (0 if self._is_deflate else 16)
            )
        try:
            decoded = self._stream.decompress(piece, most)
        except zlib.error as error:
            raise ValueError(f"it cannot be decompressed ({error})") from None
        if self._stream.eof and self._stream.unused_data:
            raise ValueError("data follow the end of the compressed body")
        return decoded

    def finish(self) -> None:
        """End the body. Raises ValueError if its end is missing."""
        if self._stream is not None and not self._stream.eof:
            raise ValueError("the end of the compressed body is missing")


# -- A client that calls a server through a proxy, by aiohttp, which knows tunnels and the keys of proxies


class ProxiedClient:
    """Calls one server through a proxy."""

    def __init__(self, target: Target, timeouts: Timeouts, proxy: str | None) -> None:
        """Open a session; nothing is sent. Without a `proxy`, that of the environment counts."""
        self._address = target.address
        self._timeouts = timeouts
        self._session = new_session(target, timeouts, proxy, uses_environment_proxy=proxy is None)

    async def call(self, path: str, body: bytes | None = None, *, total: float | None = None) -> Reply:
        import aiohttp

        seconds = self._timeouts.total if total is None else total
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=self._timeouts.connect)
        try:
            async with self._session.request(
                "GET" if body is None else "POST",
                self._address + path,
                data=body,
                headers=None if body is None else {"Content-Type": "application/json"},
                timeout=timeout,
                allow_redirects=False,
            ) as reply:
                raw, is_whole = await read_body(reply)
        except aiohttp.ConnectionTimeoutError:
            raise no_connection(self._timeouts.connect) from None
        except TimeoutError:
            raise NoAnswerError(seconds) from None
        except (aiohttp.ClientError, OSError) as error:
            raise broken(error) from None
        headers: dict[str, str] = {}
        for name, value in reply.headers.items():
            headers.setdefault(name.lower(), value)
        return Reply(reply.status, headers, raw, is_whole)

    async def aclose(self) -> None:
        await self._session.close()


def new_session(
    target: Target, timeouts: Timeouts, proxy: str | None, *, uses_environment_proxy: bool
) -> aiohttp.ClientSession:
    """Open a session with a server; a `proxy` of None: none, or that of the environment."""
    # It takes 0.2 s, which calls without a proxy save.
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
        timeout=aiohttp.ClientTimeout(total=timeouts.total, sock_connect=timeouts.connect),
        headers=target.headers,
        proxy=proxy,
        trust_env=uses_environment_proxy,
    )
