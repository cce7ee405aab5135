"""A small data set in a repository's archive, and a faulty archive server on loopback."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image, ImageOps

from sightline.benchmarks.base import Release
from sightline.data.pull import releases

TOP = "CODIS-d070cf759c42"
Pack = Callable[..., bytes]


def record(number: int, image: str) -> dict[str, Any]:
    return {
        "id": f"{number:03}",
        "image_id": image,
        "question": "Is it morning or evening?",
        "context": {"context_1": "I face east.", "context_2": "I face west."},
        "answer": {"answer_1": "Morning.", "answer_2": "Evening."},
        "category": "Temporal Information",
    }


def drawn(colour: str) -> bytes:
    out = io.BytesIO()
    ImageOps.colorize(Image.radial_gradient("L"), "black", colour).save(out, "JPEG")
    return out.getvalue()


@pytest.fixture(scope="session")
def content() -> dict[str, bytes]:
    """The repository: three records about two images, and files that the data set does not need."""
    records = [record(0, "a.jpg"), record(1, "b.jpg"), record(2, "a.jpg")]
    return {
        "README.md": b"# CODIS",
        "data/data.json": json.dumps(records).encode(),
        "data/eval.py": b"raise SystemExit",
        "data/images/a.jpg": drawn("red"),
        "data/images/b.jpg": drawn("blue"),
        "static/images/logo.jpg": drawn("white"),
    }


@pytest.fixture(scope="session")
def source(content: dict[str, bytes]) -> Release:
    """The small data set as a source, with its own digest pinned."""
    (records,) = releases()["codis"].records
    digest = hashlib.sha256(content["data/data.json"]).hexdigest()
    return replace(releases()["codis"], records=(replace(records, sha256=digest, samples=3, images=2),))


@pytest.fixture(scope="session")
def pack(content: dict[str, bytes]) -> Pack:
    """Makes the repository's .tar.gz; arguments replace or (None) leave out members."""

    def make(changes: Mapping[str, bytes | tarfile.TarInfo | None] | None = None, level: int = 6) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for path, value in {**content, **(changes or {})}.items():
                name = path if path.startswith("/") else f"{TOP}/{path}"
                if isinstance(value, tarfile.TarInfo):
                    value.name = name
                    archive.addfile(value)
                elif value is not None:
                    member = tarfile.TarInfo(name)
                    member.size = len(value)
                    archive.addfile(member, io.BytesIO(value))
        return gzip.compress(out.getvalue(), level)

    return make


class Server:
    """Serves `content`; the other fields add faults. `asked` holds the Range headers received."""

    def __init__(self) -> None:
        self.content = b""
        self.ranges = True
        self.cut: int | None = None
        self.status = 200
        self.redirect = ""
        self.claimed_start: int | None = None
        self.announces = True
        self.silent = threading.Event()
        self.silent.set()
        self.asked: list[str | None] = []
        self.sent = 0
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.asked.append(wanted)
        self.silent.wait(5)
        if self.redirect:
            handler.send_response(302)
            handler.send_header("Location", self.redirect)
            handler.end_headers()
            return
        if self.status != 200:
            handler.send_error(self.status)
            return
        start = int(re.findall(r"\d+", wanted)[0]) if wanted and self.ranges else 0
        if start >= len(self.content) > 0:
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{len(self.content)}")
            handler.end_headers()
            return
        handler.send_response(206 if wanted and self.ranges else 200)
        if wanted and self.ranges:
            said = start if self.claimed_start is None else self.claimed_start
            size = len(self.content)
            handler.send_header("Content-Range", f"bytes {said}-{size - 1}/{size}")
        if self.announces:
            handler.send_header("Content-Length", str(len(self.content) - start))
        handler.end_headers()
        piece = self.content[start : self.cut]
        # Counted first: the client may read the counter before this thread continues.
        self.sent += len(piece)
        # The client closes the connection once it has enough.
        with suppress(BrokenPipeError, ConnectionResetError):
            handler.wfile.write(piece)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        state.url = f"http://127.0.0.1:{running.server_port}/archive"
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield state
        state.silent.set()
        running.shutdown()
