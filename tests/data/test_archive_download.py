"""A download continues where it stopped, and does not trust the server."""

from __future__ import annotations

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sightline.data import archives
from sightline.data.archives import InvalidReleaseError, download_archive
from sightline.errors import EnvironmentFailedError

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "archive.part"


def test_a_partial_file_is_continued(part: Path, server: Any) -> None:
    server.content = CONTENT
    part.write_bytes(CONTENT[:3000])
    download_archive(server.url, part)
    assert part.read_bytes() == CONTENT
    assert server.sent == len(CONTENT) - 3000


def test_a_complete_file_is_not_sent_again(part: Path, server: Any) -> None:
    server.content = CONTENT
    part.write_bytes(CONTENT)
    download_archive(server.url, part)
    assert part.read_bytes() == CONTENT
    assert server.sent == 0


def test_a_file_longer_than_the_servers_is_downloaded_again(part: Path, server: Any) -> None:
    server.content = CONTENT
    part.write_bytes(CONTENT + b"more")
    download_archive(server.url, part)
    assert part.read_bytes() == CONTENT


def test_without_range_support_the_download_starts_again(part: Path, server: Any) -> None:
    server.content, server.ranges = CONTENT, False
    part.write_bytes(b"other" * 100)
    download_archive(server.url, part)
    assert part.read_bytes() == CONTENT


@pytest.mark.parametrize("said", [0, 17])
def test_another_range_than_requested_is_never_appended(part: Path, server: Any, said: int) -> None:
    server.content, server.claimed_start = CONTENT, said
    part.write_bytes(CONTENT[:3000])
    with pytest.raises(EnvironmentFailedError, match="another range than requested"):
        download_archive(server.url, part)
    assert not part.exists()


@pytest.mark.parametrize("announces", [True, False])
def test_a_file_larger_than_the_limit_is_refused(part: Path, server: Any, announces: bool) -> None:
    server.content, server.announces = CONTENT, announces
    with pytest.raises(InvalidReleaseError, match=r"more than 5,000"):
        download_archive(server.url, part, limit=5000)


def test_a_redirect_to_plain_http_is_refused(part: Path, server: Any) -> None:
    server.redirect = "http://127.0.0.1:1/archive"
    with pytest.raises(
        InvalidReleaseError, match=r"redirects to http://127\.0\.0\.1:1/archive, which is not https"
    ):
        download_archive(server.url, part)


def test_a_redirect_to_https_is_followed(part: Path, server: Any) -> None:
    server.redirect = "https://127.0.0.1:1/archive"
    with pytest.raises(EnvironmentFailedError, match=r"cannot be reached: ConnectionRefusedError"):
        download_archive(server.url, part)


def test_a_server_that_stops_sending_times_out(part: Path, server: Any) -> None:
    server.silent.clear()
    with pytest.raises(EnvironmentFailedError, match=r"no data for 0\.2 s"):
        download_archive(server.url, part, timeout=0.2)


def test_a_server_that_drips_is_given_up_and_what_it_sent_is_kept(
    part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "SLOW_SECONDS", 0.2)
    ended = threading.Event()

    class Drip(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while not ended.wait(0.02):
                    self.wfile.write(b"x")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Drip) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with pytest.raises(
                EnvironmentFailedError, match=r"in 0.2 s; the least is 65,536.*continues from"
            ):
                download_archive(f"http://127.0.0.1:{server.server_port}/archive", part)
        finally:
            ended.set()
            server.shutdown()
    assert part.read_bytes().startswith(b"xx")


def test_an_unreachable_server_is_reported(part: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EnvironmentFailedError, match=r"cannot be reached: ConnectionRefusedError"):
        download_archive(f"http://127.0.0.1:{port}/x", part)
    assert not part.exists()


def test_an_invalid_url_is_refused(part: Path) -> None:
    with pytest.raises(InvalidReleaseError, match="this is not a URL"):
        download_archive("http://example:x/", part)


def test_a_disk_error_differs_from_a_broken_connection(tmp_path: Path, server: Any) -> None:
    server.content = CONTENT
    with pytest.raises(EnvironmentFailedError, match="cannot be written: No such file or directory"):
        download_archive(server.url, tmp_path / "gone/archive.part")
