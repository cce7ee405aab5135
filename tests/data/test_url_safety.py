"""Nothing is downloaded from private networks, whatever the URL, the host name or the redirect is."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import pytest
from aiohttp.resolver import ThreadedResolver
from hypothesis import given
from hypothesis import strategies as st
from tests.data.hostile import Hostile, drawn, hostile, page, redirect
from yarl import URL

from sightline.data import image_fetcher
from sightline.data.image_download import ImageDownload, download_images
from sightline.data.image_fetcher import (
    DownloadError,
    FetchLimits,
    HostLimits,
    RefusedAddressError,
    check_address,
    parse_url,
    redirect_target,
)

__all__ = ["hostile"]

LIMITS = FetchLimits(attempts=1, host=HostLimits(pause=0.01))


def refused(address: str, *, allow_private: bool = False) -> bool:
    try:
        check_address(address, allow_private=allow_private)
    except RefusedAddressError:
        return True
    return False


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_that_is_not_global_is_refused(address: IPv4Address) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert refused(str(address))


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_that_is_not_global_or_wraps_another_is_refused(address: IPv6Address) -> None:
    wraps = address.ipv4_mapped or address.sixtofour or address.teredo
    if wraps or not address.is_global or address.is_multicast or address.is_reserved:
        assert refused(str(address))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_refused_in_every_ipv6_form(address: IPv4Address) -> None:
    value = int(address)
    for prefix in ("::", "::ffff:0:0", "64:ff9b::", "64:ff9b:1::", "fe80::5efe:0:0"):
        assert refused(str(IPv6Address(int(ip_address(prefix)) + value)))
    assert refused(str(IPv6Address((0x2002 << 112) + (value << 80) + 1)))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "52.219.112.1", "2606:4700::1111", "2a00:1450::5"])
def test_an_address_of_the_public_internet_is_not_refused(address: str) -> None:
    assert not refused(address)


@pytest.mark.parametrize(
    "address", ["", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "1.2.3.4.5", "fe80::1%lo"]
)
def test_unusual_forms_of_addresses_are_refused(address: str) -> None:
    assert refused(address)


NO_URLS = (
    "file:///etc/passwd",
    "ftp://h/x.png",
    "data:image/png;base64,AAAA",
    "javascript:1",
    "gopher://h/_x",
    "unix:/run/x",
    "//h/x.png",
    "x.png",
    "",
    "http://",
    "http:///x.png",
    "http://h:99999/",
    "http://[::1/x.png",
)


@pytest.mark.parametrize("url", NO_URLS)
def test_only_http_urls_are_accepted(url: str) -> None:
    with pytest.raises(DownloadError, match="URL refused"):
        parse_url(url)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/c.png", "https://h/c.png"),
        ("//other/c.png", "https://other/c.png"),
        ("https://other/%2Fc+d%2B.png#top", "https://other/%2Fc+d%2B.png"),
    ],
)
def test_a_redirect_is_followed_as_browsers_do(location: str, target: str) -> None:
    assert str(redirect_target(URL("https://h/a/b.png"), location)) == target


@pytest.mark.parametrize("location", ["", "http://h/c.png", "file:///etc/passwd", "ftp://h/c", "http://[::1"])
def test_an_invalid_or_insecure_redirect_is_refused(location: str) -> None:
    with pytest.raises(DownloadError, match="URL refused"):
        redirect_target(URL("https://h/a/b.png"), location)


def settled(urls: list[str], folder: Path) -> ImageDownload:
    """The urls fetched into a folder, from public addresses only."""
    wanted = {url: f"images/{number}.png" for number, url in enumerate(urls)}
    return download_images(wanted, folder / "data", limits=LIMITS)


HERE = (
    "127.0.0.1",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "user:word@127.0.0.1",
)


@pytest.mark.parametrize("host", HERE)
def test_this_machine_gets_no_connection(hostile: Hostile, tmp_path: Path, host: str) -> None:
    hostile.serve({"/a.png": page(drawn())})
    found = settled([f"http://{host}:{hostile.port}/a.png"], tmp_path)
    assert len(found.missing) == 1
    assert hostile.connections == 0


def test_a_refused_address_says_why(hostile: Hostile, tmp_path: Path) -> None:
    hostile.serve({"/a.png": page(drawn())})
    (lost,) = settled([hostile.url("/a.png")], tmp_path).missing.values()
    assert (lost.reason, lost.detail) == (
        "URL refused",
        "127.0.0.1 is not a public address (loopback)",
    )


def test_private_addresses_can_be_allowed(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({"/a.png": page(drawn())})
    assert not download_images(wanted, tmp_path, allow_private=True, limits=LIMITS).missing


METADATA = (
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fd00:c1::a9fe:a9fe]",
    "[fe80::1]",
    "[::ffff:169.254.169.254]",
    "[::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]",
    "2852039166",
    "0xa9fea9fe",
    "169.254.43518",
    "images.test",
)


@pytest.mark.parametrize("is_redirect", [False, True])
def test_metadata_and_link_local_addresses_are_refused_although_private_ones_are_allowed(
    hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_redirect: bool
) -> None:
    """Whatever their form, also if a name or a redirect leads to them. Nothing listens at the port."""
    resolve = ThreadedResolver.resolve

    async def resolved(self: ThreadedResolver, host: str, *args: Any, **kwargs: Any) -> Any:
        return await resolve(self, "169.254.1.1" if host == "images.test" else host, *args, **kwargs)

    monkeypatch.setattr(ThreadedResolver, "resolve", resolved)
    urls = [f"http://{host}:9/a.png" for host in METADATA]
    if is_redirect:
        pages = {f"/{number}": redirect(url) for number, url in enumerate(urls)}
        wanted = hostile.serve(pages)
    else:
        wanted = {url: f"images/{number}" for number, url in enumerate(urls)}
    found = download_images(wanted, tmp_path, allow_private=True, limits=LIMITS)
    assert [(one.reason, url) for url, one in found.missing.items() if one.reason != "URL refused"] == []
    assert len(found.missing) == len(METADATA)


@given(st.ip_addresses(v=4, network="169.254.0.0/16"))
def test_a_link_local_address_is_refused_always_in_every_ipv6_form(address: IPv4Address) -> None:
    for prefix in ("::", "::ffff:0:0", "64:ff9b::", "64:ff9b:1::", "fc00:1::200:5efe:0:0"):
        wrapped = IPv6Address(int(ip_address(prefix)) + int(address))
        assert refused(str(wrapped), allow_private=True)
    teredo = IPv6Address((0x20010000 << 96) + (~int(address) & 0xFFFFFFFF))
    assert refused(str(teredo), allow_private=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd00::1"])
def test_private_addresses_are_those_that_can_be_allowed(address: str) -> None:
    assert refused(address)
    assert not refused(address, allow_private=True)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Host names with addresses; each lookup of a name gives the next address of its list."""
    names: dict[str, list[str]] = {}

    async def resolve(_: object, host: str, port: int = 0, family: int = 0) -> list[dict[str, Any]]:
        found = names[host]
        stands = found.pop(0) if len(found) > 1 else found[0]
        return [
            {"hostname": host, "host": one, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
            for one in stands.split()
        ]

    monkeypatch.setattr(ThreadedResolver, "resolve", resolve)
    return names


@pytest.mark.parametrize("found", ["127.0.0.1", "93.184.215.14 127.0.0.1", "10.0.0.1", "169.254.169.254"])
def test_a_name_with_any_private_address_is_refused(
    hostile: Hostile, tmp_path: Path, named: dict[str, list[str]], found: str
) -> None:
    named["images.test"] = [found]
    (lost,) = settled([f"http://images.test:{hostile.port}/a.png"], tmp_path).missing.values()
    assert lost.reason == "URL refused"
    assert lost.detail.startswith(found.split()[-1])
    assert hostile.connections == 0


def test_a_connection_goes_to_the_checked_address_without_a_second_lookup(
    tmp_path: Path, named: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    named["rebinding.test"] = ["93.184.215.14", "127.0.0.1"]
    reached: list[Any] = []

    def unreachable(check: object, info: tuple[Any, ...]) -> socket.socket:
        reached.append(info[4])
        raise OSError("not in a test")

    monkeypatch.setattr(image_fetcher, "_checked_socket", unreachable)
    (lost,) = settled(["http://rebinding.test/a.png"], tmp_path).missing.values()
    assert reached == [("93.184.215.14", 80)]
    assert named["rebinding.test"] == ["127.0.0.1"]
    assert (lost.reason, lost.detail) == ("connection failed", "OSError: not in a test")


def test_a_name_that_becomes_private_is_refused(
    hostile: Hostile, tmp_path: Path, named: dict[str, list[str]], public: None
) -> None:
    named["rebinding.test"] = ["127.0.0.1", "10.0.0.1"]
    hostile.serve({path: page(drawn()) for path in ("/a.png", "/b.png")})
    urls = [f"http://rebinding.test:{hostile.port}{path}" for path in ("/a.png", "/b.png")]
    first, second = settled(urls[:1], tmp_path), settled(urls, tmp_path)
    assert (first.downloaded, list(second.missing)) == (1, urls[1:])
    assert second.missing[urls[1]].detail == "10.0.0.1 is not a public address (private)"


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the server's address as public, and no other address of this machine."""
    real = image_fetcher.check_address

    def check(address: str, *, allow_private: bool) -> None:
        if address != "127.0.0.1":
            real(address, allow_private=allow_private)

    monkeypatch.setattr(image_fetcher, "check_address", check)


INSIDE = (
    "http://127.0.0.2:{port}/b.png",
    "http://127.1:{port}/b.png",
    "http://[::1]:{port}/b.png",
    "http://[fe80::1]/b.png",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.1.2.3/b.png",
    "//192.168.0.1/b.png",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "gopher://127.0.0.1:{port}/b.png",
)


@pytest.mark.parametrize("location", INSIDE)
def test_redirects_obey_the_same_rules_as_urls(
    hostile: Hostile, tmp_path: Path, public: None, location: str
) -> None:
    hostile.serve({"/a.png": redirect(location.format(port=hostile.port)), "/b.png": page(drawn())})
    (lost,) = settled([hostile.url("/a.png")], tmp_path).missing.values()
    assert lost.reason == "URL refused"
    assert hostile.asked == ["/a.png"]
    assert hostile.connections == 1


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
def test_a_redirect_within_the_public_internet_is_followed(
    hostile: Hostile, tmp_path: Path, public: None, status: str
) -> None:
    hostile.serve({"/a/a.png": redirect("../b.png", status), "/b.png": page(drawn())})
    assert not settled([hostile.url("/a/a.png")], tmp_path).missing
    assert hostile.asked == ["/a/a.png", "/b.png"]
