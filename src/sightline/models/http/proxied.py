"""A client that calls a server through a proxy, by aiohttp, which knows tunnels and the keys of proxies."""

from __future__ import annotations

import aiohttp

from sightline.models.http.direct import IDLE_SECONDS
from sightline.models.http.interface import NoAnswerError, Reply, Timeouts, broken, no_connection
from sightline.models.http.request_head import Target
from sightline.models.reply_body import read_body


class ProxiedClient:
    """Calls one server through a proxy."""

    def __init__(self, target: Target, timeouts: Timeouts, proxy: str | None) -> None:
        """Open a session; nothing is sent.

        Args:
            proxy: URL of the proxy; None: that of the environment.
        """
        self._address = target.address
        self._timeouts = timeouts
        self._session = new_session(target, timeouts, proxy, uses_environment_proxy=proxy is None)

    async def call(self, path: str, body: bytes | None = None, *, total: float | None = None) -> Reply:
        """Make one call, as `HTTPClient.call`."""
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
        """Close all connections."""
        await self._session.close()


def new_session(
    target: Target, timeouts: Timeouts, proxy: str | None, *, uses_environment_proxy: bool
) -> aiohttp.ClientSession:
    """Open a session of aiohttp with a server.

    Args:
        proxy: URL of a proxy; None: none, or that of the environment.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
        timeout=aiohttp.ClientTimeout(total=timeouts.total, sock_connect=timeouts.connect),
        headers=target.headers,
        proxy=proxy,
        trust_env=uses_environment_proxy,
    )
