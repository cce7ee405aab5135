"""Opens the client for a server: the direct one, or the one for proxies."""

from __future__ import annotations

from urllib.parse import urlsplit

from sightline.models.http.direct import DirectClient
from sightline.models.http.interface import HTTPClient, Timeouts
from sightline.models.http.request_head import Target


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
    # Importing aiohttp takes 0.2 s.
    from sightline.models.http.proxied import ProxiedClient

    return ProxiedClient(target, timeouts, proxy)


def has_environment_proxy(address: str) -> bool:
    """Whether the environment names a proxy for an address."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(address)
    return bool(getproxies().get(parts.scheme)) and not proxy_bypass(parts.hostname or "")
