"""Which addresses images may be fetched from: http and https, and public hosts unless others are allowed.

A data set's urls are other people's words. One that leads, by itself, by a name or by a redirect, into the
network of whoever fetches it must not be followed: every address that a name stands for is looked at, and
the connection is made to an address that was looked at, never to the name again.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from sightline.data.errors import DownloadError

SCHEMES = ("http", "https")

# The IANA registries of special-purpose addresses (RFC 6890), and what lies in public space but leads into
# the fetching machine's own cloud. Of IPv6 only 2000::/3 is handed out to hosts (RFC 4291), which leaves out
# loopback, link-local, unique local, multicast, IPv4-mapped and NAT64 addresses without a line for each.
_NOT_PUBLIC: tuple[tuple[IPv4Network | IPv6Network, str], ...] = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a provider"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's own"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("2001::/23", "reserved, Teredo among it"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
    )
)
_UNICAST = IPv6Network("2000::/3")


class NotPublic(OSError):  # noqa: N818 - it says what the address is
    """An address that nothing is fetched from; its text says which and why."""


def refuse_private(address: str) -> None:
    """Raise NotPublic unless the address (IPv4 or IPv6, as text) is one of the public internet.

    >>> refuse_private("93.184.215.14")
    >>> refuse_private("169.254.169.254")
    Traceback (most recent call last):
    sightline.data.addresses.NotPublic: 169.254.169.254 is no public address (link-local)
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        # 127.1 and 2130706433 are addresses to a socket, and to nobody who means well.
        raise NotPublic(f"{address} is no address in its usual form") from None
    for network, kind in _NOT_PUBLIC:
        if parsed in network:
            raise NotPublic(f"{address} is no public address ({kind})")
    if parsed.version == 6 and parsed not in _UNICAST:
        raise NotPublic(f"{address} is no public address (outside {_UNICAST})")


def parse(url: str) -> URL:
    """The url; Missed where it is none, or none of http or https."""
    try:
        parsed = URL(url)
        host = parsed.host
    except ValueError as error:
        raise DownloadError("address refused", f"this is no url: {error}") from None
    if parsed.scheme not in SCHEMES:
        raise DownloadError("address refused", f"{parsed.scheme or 'no scheme'} is not http or https")
    if not host:
        raise DownloadError("address refused", "it names no host")
    return parsed.with_fragment(None)


def onward(url: URL, location: str) -> URL:
    """Where a redirect leads; Missed where that is nowhere, no http(s), or http after https.

    >>> onward(URL("https://h/a/b.jpg"), "../c.jpg")
    URL('https://h/c.jpg')
    """
    if not location:
        raise DownloadError("address refused", "a redirect that does not say where to")
    try:
        target = url.join(URL(location))
    except ValueError as error:
        raise DownloadError("address refused", f"a redirect to what is no url: {error}") from None
    target = parse(str(target))
    if url.scheme == "https" and target.scheme != "https":
        raise DownloadError("address refused", f"a redirect from https to {target}")
    return target


def connector(private: bool) -> aiohttp.TCPConnector:
    """What makes connections: to public addresses only, unless `private` ones are allowed too.

    Each name is resolved where a connection is made, and every address that it has must be public. The
    socket is made for an address, which is looked at once more: one that stands in the url itself is never
    resolved.
    """
    if private:
        return aiohttp.TCPConnector(limit=0, resolver=ThreadedResolver())
    return aiohttp.TCPConnector(limit=0, resolver=_PublicNames(), socket_factory=_public_socket)


class _PublicNames(ThreadedResolver):
    """Resolves names, and refuses one of which any address is not public."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name; NotPublic where one of them is not public."""
        found = await super().resolve(host, port, family)
        for one in found:
            refuse_private(one["host"])
        return found


def _public_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for what `socket.getaddrinfo` says of an address; NotPublic where that leads inside."""
    family, kind, protocol, _, address = info
    refuse_private(str(address[0]))
    return socket.socket(family, kind, protocol)
