"""A server on loopback that sends given bytes, and helpers to download from it."""

from __future__ import annotations

import contextlib
import io
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from sightline.data.image_download import ImageDownload, download_images
from sightline.data.image_fetcher import FetchLimits, HostLimits

Page = bytes | Callable[[socket.socket], None]
"""The bytes to send, or a function that sends them."""


LIMITS = FetchLimits(bytes=300_000, redirects=4, attempts=2, host=HostLimits(pause=0.01))


def settle(wanted: Mapping[str, str], folder: Path, **limits: Any) -> ImageDownload:
    """Download images, also from this machine, with short pauses and few attempts."""
    return download_images(wanted, folder, allow_private=True, limits=replace(LIMITS, **limits))


def counts(found: ImageDownload) -> tuple[int, int, int]:
    """The numbers of present, downloaded and missing images."""
    return found.present, found.downloaded, len(found.missing)


def files(folder: Path) -> list[str]:
    """Every file below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def drawn(shade: int = 0, size: tuple[int, int] = (40, 30), form: str = "PNG") -> bytes:
    """An image of one colour."""
    out = io.BytesIO()
    Image.new("RGB", size, (shade % 256, shade // 256, 90)).save(out, form)
    return out.getvalue()


def noise(side: int) -> bytes:
    """An image that does not compress, about 3 bytes a pixel."""
    out = io.BytesIO()
    Image.effect_noise((side, side), 90).convert("RGB").save(out, "PNG", compress_level=0)
    return out.getvalue()


def page(
    body: bytes = b"",
    status: str = "200 OK",
    media: str = "image/png",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A complete HTTP response."""
    lines = {
        "Content-Type": media,
        "Content-Length": str(len(body)),
        "Connection": "close",
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return page(status=status, headers={"Location": location})


class Hostile:
    """Sends `pages` by the path that is asked for, one of several after the other and the last for good.

    `asked` are the paths in the order of their coming, `heads` what came with them; `most` were answered at
    the same time. `hold`: the seconds that every answer waits, so that others can come meanwhile.
    """

    def __init__(self) -> None:
        self.pages: dict[str, Page | list[Page]] = {}
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.connections = self.most = self.sent = 0
        self.hold = 0.0
        self.port = 0
        self._now = 0
        self._lock = threading.Lock()

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def serve(self, pages: Mapping[str, Page | list[Page]]) -> dict[str, str]:
        """Serve the pages from now on; returns their urls, each with the path of its image."""
        self.pages = dict(pages)
        return {self.url(path): f"images{path}" for path in pages}

    def endless(self, piece: bytes) -> Page:
        """A body without an end."""

        def send(connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nConnection: close\r\n\r\n")
            while True:
                self.sent += connection.send(piece)

        return send

    def answer(self, connection: socket.socket) -> None:
        head = b""
        with self._lock:
            self.connections += 1
        while b"\r\n\r\n" not in head and (piece := connection.recv(4096)):
            head += piece
        if not head:
            return
        path = head.split(b" ")[1].decode()
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.asked.append(path)
            self.heads.append(head.decode())
            found = self.pages.get(path, page(status="404 Not Found"))
            if isinstance(found, list):
                found = found.pop(0) if len(found) > 1 else found[0]
        time.sleep(self.hold)
        with self._lock:
            # Counted before the response is sent, because the client may then send the next request.
            self._now -= 1
        if callable(found):
            found(connection)
        else:
            connection.sendall(found)


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    """The server."""
    state = Hostile()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                state.answer(self.request)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as running:
        # Do not wait for threads that still send at the end.
        running.block_on_close = False
        state.port = running.server_address[1]
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield state
        running.shutdown()


def slowly(piece: bytes, seconds: float) -> Page:
    """An endless body that arrives slowly."""

    def send(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n")
        while True:
            connection.sendall(piece)
            time.sleep(seconds)

    return send


def silence(connection: socket.socket) -> None:
    """No response until the client closes the connection."""
    connection.settimeout(20)
    connection.recv(1)
