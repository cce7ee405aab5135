"""Reads the body of a server's reply up to a limit of bytes, which hold after decompression too."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sightline.types import Failure

if TYPE_CHECKING:
    import aiohttp

MAX_BYTES = 16 * 1024**2
"""The most bytes of a reply, decompressed. 100,000 tokens have 0.5 MB, with log-probabilities 10 MB."""

_REMEDY = "check what this server sends; --retry-errors asks it again"


async def read_body(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """Read the body of a reply as far as the limit allows.

    Returns:
        At most the first `MAX_BYTES` bytes, and whether this is the whole body. The rest is not received.
    """
    body = b""
    async for piece in response.content.iter_any():
        body = body + piece if body else piece
        if len(body) > MAX_BYTES:
            return body[:MAX_BYTES], False
    return body, True


def too_large(host: str) -> Failure:
    """The failure for a reply over the limit of bytes. It is permanent: another call costs as much."""
    limit = f"the limit is {MAX_BYTES:,} bytes, decompressed"
    remedy = f"limit the answer with --gen max_tokens=N, or {_REMEDY}"
    return Failure("permanent", f"{host}: the reply is too large: {limit}; {remedy}", status=200)


def too_deep(host: str) -> Failure:
    """The failure for a reply whose JSON is nested more deeply than Python reads."""
    limit = f"the limit is {sys.getrecursionlimit():,} levels"
    return Failure("permanent", f"{host}: the reply is nested too deeply: {limit}; {_REMEDY}", status=200)
