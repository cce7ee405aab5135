"""An image is fetched completely or not at all, whatever the server sends, and hosts are throttled."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
from tests.data.hostile import (
    LIMITS,
    Hostile,
    Page,
    counts,
    drawn,
    files,
    hostile,
    page,
    redirect,
    settle,
    silence,
    slowly,
)

from sightline.data.image_download import IMAGE_MANIFEST
from sightline.data.image_fetcher import PIECE, HostLimits

__all__ = ["hostile"]

IMAGE = drawn()


def test_the_content_determines_the_type_not_the_server(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({"/a.png": page(IMAGE, media="text/html"), "/b": page(drawn(form="WEBP"))})
    assert counts(settle(wanted, tmp_path)) == (0, 2, 0)


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG that claims a size, with these chunks and one line of pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    whole = [(b"IHDR", head), *chunks, (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in whole
    )


BOMB = zlib.compress(bytes(10_000_000))
GZIPPED = gzip.compress(bytes(10_000_000))


def two_in_one(connection: socket.socket) -> None:
    """A length that is too small on an open connection, followed by another response."""
    whole = page(IMAGE, headers={"Content-Length": "60", "Connection": "keep-alive"})
    connection.sendall(whole)
    connection.sendall(page(drawn(3)))


BAD: dict[str, tuple[Page, int, str, str]] = {
    "not there": (page(status="404 Not Found"), 1, "HTTP 404", "Not Found"),
    "gone": (page(status="410 Gone"), 1, "HTTP 410", "Gone"),
    "forbidden": (page(IMAGE, status="403 Forbidden"), 1, "HTTP 403", "Forbidden"),
    "a part": (page(IMAGE, status="206 Partial Content"), 1, "HTTP 206", "Partial Content"),
    "broken": (page(status="500 Internal Server Error"), 2, "HTTP 500", "Internal Server Error"),
    "busy": (page(status="429 Slow Down", headers={"Retry-After": "0"}), 2, "HTTP 429", "Slow Down"),
    "no word": (b"HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", 1, "HTTP 404", "no reason given"),
    "a wicked word": (page(status="404 \x1b[2J\x07gone"), 1, "", "gone"),
    "a loop": (redirect("/x.png"), 5, "too many redirects", "more than 4, the last to http://127"),
    "nowhere": (page(status="302 Found"), 1, "URL refused", "without a Location header"),
    "html": (page(b"<html>x.png</html>", media="text/html"), 1, "not an image", "calls it text/html"),
    "nothing": (page(b""), 1, "not an image", "the file is empty"),
    "half": (page(IMAGE[: len(IMAGE) // 2]), 1, "not an image", ""),
    "too few bytes": (page(IMAGE, headers={"Content-Length": "9999"}), 2, "connection failed", "complete"),
    "too many bytes": (page(IMAGE, headers={"Content-Length": "60"}), 2, "connection failed", "Data after"),
    "two answers in one": (two_in_one, 2, "", ""),
    "a wrong length": (page(IMAGE, headers={"Content-Length": "-1"}), 2, "connection failed", ""),
    "announced": (page(IMAGE, headers={"Content-Length": "10000000000"}), 1, "too large", "10,000,000,000"),
    "too large": (page(bytes(300_001)), 1, "too large", "more than 300,000"),
    "pixels": (page(png(50_000, 50_000)), 1, "not an image", "more than 120,000,000 pixels"),
    "a few pixels too many": (
        page(png(12_000, 11_000)),
        1,
        "not an image",
        "12000 x 11000 pixels, more than",
    ),
    "a long side": (page(png(40_000, 1)), 1, "not an image", "more than 30,000 a side"),
    "a bomb of text": (page(png(4, 4, (b"zTXt", b"k\0\0" + BOMB))), 1, "not an image", ""),
    "a bomb of colours": (page(png(4, 4, (b"iCCP", b"k\0\0" + BOMB), (b"zTXt", b"k\0\0" + BOMB))), 1, "", ""),
    "gzip": (page(GZIPPED, headers={"Content-Encoding": "gzip"}), 1, "compressed", "sent as gzip"),
    "gzip of an image": (page(gzip.compress(IMAGE), headers={"Content-Encoding": "GZip"}), 1, "", ""),
    "brotli": (page(IMAGE, headers={"Content-Encoding": "br"}), 1, "compressed", "sent as br"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.7\r\n\r\n", 2, "connection failed", ""),
    # If a server closes the connection at once, aiohttp retries once in each of our two attempts.
    "hung up": (b"", 4, "connection failed", ""),
    "endless words": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, 2, "connection failed", ""),
}


@pytest.mark.parametrize("case", BAD)
def test_a_response_that_is_not_an_image_is_one_recorded_error_and_leaves_nothing(
    hostile: Hostile, tmp_path: Path, case: str
) -> None:
    answer, asked, reason, detail = BAD[case]
    wanted = hostile.serve({"/x.png": answer, "/good.png": page(IMAGE)})
    found = settle(wanted, tmp_path / "data")
    (lost,) = found.missing.values()
    assert found.downloaded == 1
    assert reason in lost.reason
    assert detail in lost.detail
    assert (lost.reason + lost.detail).isprintable()
    assert hostile.asked.count("/x.png") == asked
    assert files(tmp_path) == ["data/image_manifest.json", "data/images/good.png"]
    (entry,) = json.loads((tmp_path / "data" / IMAGE_MANIFEST).read_text())["missing"].values()
    assert entry == {"path": "images/x.png", "reason": lost.reason, "detail": lost.detail}


@pytest.mark.parametrize(
    ("answer", "limit", "detail"),
    [
        (silence, {"read": 0.2}, "no data for 0.2 s"),
        # Data arrives in time but never ends.
        (slowly(b"x", 0.05), {"total": 0.5}, "no answer within 0.5 s"),
    ],
)
def test_a_server_that_never_finishes_times_out(
    hostile: Hostile, tmp_path: Path, answer: Page, limit: dict[str, float], detail: str
) -> None:
    wanted = hostile.serve({"/x.png": answer})
    found = settle(wanted, tmp_path, **limit)
    (lost,) = found.missing.values()
    assert (lost.reason, lost.detail) == ("timed out", detail)
    assert files(tmp_path) == ["image_manifest.json"]
    assert len(hostile.asked) == LIMITS.attempts


def test_a_refused_connection_is_a_recorded_error(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (lost,) = settle({f"http://127.0.0.1:{port}/x.png": "images/x.png"}, tmp_path).missing.values()
    assert lost.reason == "connection failed"
    assert files(tmp_path) == ["image_manifest.json"]


def test_an_endless_body_is_neither_read_completely_nor_held_in_memory(
    hostile: Hostile, tmp_path: Path
) -> None:
    limit = 24 * 1024 * 1024
    wanted = hostile.serve({"/x.png": hostile.endless(bytes(PIECE))})
    tracemalloc.start()
    try:
        found = settle(wanted, tmp_path, bytes=limit, total=60)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (lost,) = found.missing.values()
    assert (lost.reason, lost.detail) == ("too large", "more than 25,165,824 bytes")
    # The buffers of the sockets come on top of what was read.
    assert limit < hostile.sent < limit + 16 * 1024 * 1024
    assert most < 4 * 1024 * 1024
    assert files(tmp_path) == ["image_manifest.json"]


def test_temporary_failures_are_retried(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve(
        {
            "/a.png": [page(status="429 Slow Down", headers={"Retry-After": "0.02"}), page(IMAGE)],
            "/b.png": [page(status="503 Service Unavailable"), page(IMAGE)],
            "/c.png": [b"", page(IMAGE)],
            "/d.png": [page(IMAGE, headers={"Content-Length": "9999"}), page(IMAGE)],
        }
    )
    assert counts(settle(wanted, tmp_path)) == (0, 4, 0)
    assert sorted(hostile.asked) == sorted([path for path in hostile.pages for _ in range(2)])


def test_a_link_whose_server_asks_for_a_long_pause_fails_and_no_other_one(
    hostile: Hostile, tmp_path: Path
) -> None:
    busy = page(status="429 Too Many Requests", headers={"Retry-After": "3600"})
    wanted = hostile.serve({"/0.png": busy} | {f"/{number}.png": page(IMAGE) for number in range(1, 20)})
    found = settle(wanted, tmp_path)
    assert hostile.asked.count("/0.png") == 1
    (lost,) = found.missing.values()
    assert (lost.reason, lost.detail) == ("HTTP 429", "the server asks for a pause of 3,600 s")


def test_a_host_that_always_fails_gets_no_further_request(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({f"/{number}.png": page(status="502 Bad Gateway") for number in range(60)})
    found = settle(wanted, tmp_path)
    reasons = [lost.reason for lost in found.missing.values()]
    assert len(reasons) == 60
    assert LIMITS.host.max_failures <= len(hostile.asked) < LIMITS.host.max_failures + LIMITS.host.concurrency
    assert reasons.count("host given up") > 60 - len(hostile.asked)
    told = {lost.detail for lost in found.missing.values() if lost.reason == "host given up"}
    assert told == {"127.0.0.1 failed 12 times in a row, the last time: HTTP 502: Bad Gateway"}


def test_dead_links_do_not_count_as_failures_of_the_host(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({f"/{n}.png": page(status="404 Not Found") for n in range(40)})
    found = settle(wanted, tmp_path)
    assert {lost.reason for lost in found.missing.values()} == {"HTTP 404"}


def test_a_host_gets_few_requests_at_a_time(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({f"/{number}.png": page(drawn(number)) for number in range(16)})
    hostile.hold = 0.03
    assert counts(settle(wanted, tmp_path, host=HostLimits(concurrency=3))) == (0, 16, 0)
    assert 2 <= hostile.most <= 3


def test_a_request_has_a_user_agent_refuses_compression_and_sends_no_cookie(
    hostile: Hostile, tmp_path: Path
) -> None:
    # The same URL, without quoting where it is not needed.
    asked = ["/a.png", "/b%2B_(1).png?x=/"]
    hostile.serve({asked[0]: page(IMAGE, headers={"Set-Cookie": "who=you"}), asked[1]: page(IMAGE)})
    named = {"/a.png": "images/a.png", "/b%2B_%281%29.png?x=%2F": "images/b.png"}
    wanted = {hostile.url(path): name for path, name in named.items()}
    assert counts(settle(wanted, tmp_path, concurrency=1)) == (0, 2, 0)
    assert hostile.asked == asked
    for head in hostile.heads:
        assert "User-Agent: sightline/" in head
        assert "Accept-Encoding: identity" in head
        assert "Cookie" not in head
