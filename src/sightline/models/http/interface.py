"""What a call of an HTTP server takes and returns, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class Timeouts(Struct, frozen=True):
    """How long calls may take.

    Attributes:
        total: Seconds from the start of a call to the last byte of its reply; None for no limit.
        connect: Seconds until a connection is open, with TLS.
    """

    total: float | None
    connect: float


class Reply(Struct, frozen=True):
    """What a server replied.

    Attributes:
        body: The body, decompressed: at most the first `reply_body.MAX_BYTES` bytes.
    """

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
    """The error for one of the system or of a library."""
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
