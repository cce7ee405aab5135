"""Restricts which URLs are downloaded: http and https, and public hosts unless private ones are allowed.

Link-local addresses and those of the metadata services of clouds are refused always: they serve the
credentials of the machine.

URLs of a data set are untrusted input. One that leads into the network of the machine that downloads, by its
host, by DNS or by a redirect, must not be followed. So every IP address of a host name is checked, and the
connection is made to a checked address, never to the name again.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from sightline.data.download_error import DownloadError

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
    sightline.data.url_safety.RefusedAddressError: 10.0.0.1 is not a public address (private)
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
