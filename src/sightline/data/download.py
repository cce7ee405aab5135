"""Fetches one file by HTTP, piece by piece, and goes on where an earlier attempt broke off."""

from __future__ import annotations

import re
from http.client import HTTPException, HTTPMessage, HTTPResponse, InvalidURL
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import sightline
from sightline.errors import EnvironmentFailedError
from sightline.progress import progress

TIMEOUT_SECONDS = 60.0
"""How long a server may keep silent."""
MAX_BYTES = 2 * 1024**3
PIECE = 256 * 1024


class Refused(Exception):  # noqa: N818 - it says what happened to the archive
    """What was fetched or given is not the data set; its text says why."""


def download(
    url: str,
    path: Path,
    *,
    limit: int = MAX_BYTES,
    timeout: float = TIMEOUT_SECONDS,
    show_progress: bool = False,
) -> None:
    """Fetch `url` into `path`; what `path` holds already is not fetched again where the server allows that.

    Raises Refused where the server says no, redirects to anything but https or sends more than `limit`
    bytes; EnvironmentFailedError where it cannot be reached, or the connection breaks: `path` then keeps what
    came.
    """
    done = path.stat().st_size if path.exists() else 0
    try:
        response = _ask(url, done, timeout)
        if response is None:
            return
        with response:
            _receive(response, url, path, done, limit, show_progress)
    except HTTPError as error:
        raise Refused(f"the server answers {error.code} {error.reason}") from None
    except URLError as error:
        raise EnvironmentFailedError(
            f"{url}: cannot be reached: {error.reason}; --from takes a file too"
        ) from None
    except (InvalidURL, UnicodeError) as error:
        raise Refused(f"this is no address: {error}") from None
    except (HTTPException, OSError) as error:
        raise _broken(url, path, str(error) or type(error).__name__) from None


def _ask(url: str, done: int, timeout: float) -> HTTPResponse | None:
    """The server's answer from byte `done` on, where it can; None where nothing is left to send."""
    request = Request(url, headers={"User-Agent": f"sightline/{sightline.__version__}"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        response: HTTPResponse = build_opener(_OnlyToHttps).open(request, timeout=timeout)
        return response
    except HTTPError as error:
        if not done or error.code != 416:
            raise
        if error.headers.get("Content-Range") == f"bytes */{done}":
            return None
    return _ask(url, 0, timeout)


def _receive(
    response: HTTPResponse, url: str, path: Path, done: int, limit: int, show_progress: bool
) -> None:
    start = _start(response)
    if response.status == 206 and start != done:
        path.unlink()
        raise EnvironmentFailedError(
            f"{url}: sends another part than was asked for; the same command starts anew"
        )
    length = response.headers.get("Content-Length")
    total = start + int(length) if length and length.isdecimal() else None
    if (total or 0) > limit:
        raise Refused(f"it has {total:,} bytes, more than {limit:,}")
    with (
        _open(path, start) as file,
        progress("archive", total, "bytes", done=start, show_progress=show_progress) as advance,
    ):
        size = start
        while piece := response.read(PIECE):
            size += len(piece)
            if size > limit:
                raise Refused(f"it has more than {limit:,} bytes")
            _write(file, piece, path)
            advance(len(piece))
    if total is not None and size < total:
        raise _broken(url, path, f"{size:,} of {total:,} bytes came")


def _start(response: HTTPResponse) -> int:
    """Where in the file the answer begins."""
    if response.status != 206:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(found[1]) if found else -1


def _open(path: Path, start: int) -> IO[bytes]:
    try:
        return path.open("ab" if start else "wb")
    except OSError as error:
        raise unwritable(path, error) from None


def _write(file: IO[bytes], piece: bytes, path: Path) -> None:
    try:
        file.write(piece)
        file.flush()
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> EnvironmentFailedError:
    """The error where the disk refuses to take a file."""
    return EnvironmentFailedError(f"{path}: cannot be written: {error.strerror or error}")


def _broken(url: str, path: Path, why: str) -> EnvironmentFailedError:
    goes_on = "; the same command goes on from there" if path.exists() else ""
    return EnvironmentFailedError(f"{url}: the connection broke: {why}{goes_on}")


class _OnlyToHttps(HTTPRedirectHandler):
    """Follows redirects to https, and to nothing else."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request to follow with; Refused where it would not be https."""
        if urlsplit(newurl).scheme != "https":
            raise Refused(f"the server redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
