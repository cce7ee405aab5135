"""Downloads an archive by HTTP, if interrupted from where it ended, and extracts a data set from it."""

from __future__ import annotations

import gzip
import re
import tarfile
import time
import zlib
from http.client import HTTPException, HTTPMessage, HTTPResponse, InvalidURL
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import sightline
from sightline.benchmarks.base import Release
from sightline.errors import EnvironmentFailedError
from sightline.images import MAX_BYTES as MAX_FILE
from sightline.progress import progress

TIMEOUT_SECONDS = 60.0
"""The longest wait for data from a server."""
MAX_BYTES = 2 * 1024**3
SLOW_SECONDS, SLOW_BYTES = 60.0, 64 * 1024
"""A server that sends fewer bytes in so many seconds is given up: each byte in time is no progress."""
PIECE = 256 * 1024


class InvalidReleaseError(Exception):
    """An archive or a folder that is not the pinned release; the text says why."""


def download_archive(
    url: str,
    path: Path,
    *,
    limit: int = MAX_BYTES,
    timeout: float = TIMEOUT_SECONDS,
    show_progress: bool = False,
) -> None:
    """Download a URL into a file, from the end of a partial file if the server supports that."""
    _refuse_user(url)
    done = path.stat().st_size if path.exists() else 0
    try:
        response = _open_url(url, done, timeout)
        if response is None:
            return
        with response:
            _receive(response, url, path, done, limit, show_progress)
    except HTTPError as error:
        raise InvalidReleaseError(f"the server answers {error.code} {error.reason}") from None
    except URLError as error:
        raise EnvironmentFailedError(
            f"{url}: cannot be reached: {error.reason}; use --from FILE with a copy of the archive"
        ) from None
    except (InvalidURL, UnicodeError) as error:
        raise InvalidReleaseError(f"this is not a URL: {error}") from None
    except (HTTPException, OSError) as error:
        raise _broken(url, path, str(error) or type(error).__name__) from None


def _refuse_user(url: str) -> None:
    """Refuse a user name and a password, which urllib would take for a part of the host and repeat."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidReleaseError("this is not a URL") from None
    if "@" in parts.netloc:
        raise InvalidReleaseError("a URL with a user name or a password cannot be used")


def _open_url(url: str, done: int, timeout: float) -> HTTPResponse | None:
    """Request the file from byte `done` on; None if nothing is left to send."""
    request = Request(url, headers={"User-Agent": f"sightline/{sightline.__version__}"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        response: HTTPResponse = build_opener(_HttpsRedirects).open(request, timeout=timeout)
        return response
    except HTTPError as error:
        if not done or error.code != 416:
            raise
        if error.headers.get("Content-Range") == f"bytes */{done}":
            return None
    return _open_url(url, 0, timeout)


def _receive(
    response: HTTPResponse, url: str, path: Path, done: int, limit: int, show_progress: bool
) -> None:
    start = _start(response)
    if response.status == 206 and start != done:
        path.unlink()
        raise EnvironmentFailedError(
            f"{url}: the server sent another range than requested; the same command starts again"
        )
    length = response.headers.get("Content-Length")
    total = start + int(length) if length and length.isdecimal() else None
    if (total or 0) > limit:
        raise InvalidReleaseError(f"it has {total:,} bytes, more than {limit:,}")
    with (
        _open_file(path, start) as file,
        progress("archive", total, "bytes", done=start, show_progress=show_progress) as advance,
    ):
        size, counted, since = start, start, time.monotonic()
        # What has arrived is read: a full piece might never come.
        while piece := response.read1(PIECE):
            size += len(piece)
            if size > limit:
                raise InvalidReleaseError(f"it has more than {limit:,} bytes")
            _write(file, piece, path)
            advance(len(piece))
            if time.monotonic() - since > SLOW_SECONDS:
                if size - counted < SLOW_BYTES:
                    reason = f"only {size - counted:,} bytes in {SLOW_SECONDS:g} s"
                    raise _broken(url, path, f"{reason}; the least is {SLOW_BYTES:,}")
                counted, since = size, time.monotonic()
    if total is not None and size < total:
        raise _broken(url, path, f"{size:,} of {total:,} bytes received")


def _start(response: HTTPResponse) -> int:
    """The position in the file where the response starts; -1 if the server does not say."""
    if response.status != 206:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else -1


def _open_file(path: Path, start: int) -> IO[bytes]:
    try:
        return path.open("ab" if start else "wb")
    except OSError as error:
        raise write_error(path, error) from None


def _write(file: IO[bytes], piece: bytes, path: Path) -> None:
    try:
        file.write(piece)
        file.flush()
    except OSError as error:
        raise write_error(path, error) from None


def write_error(path: Path, error: OSError) -> EnvironmentFailedError:
    return EnvironmentFailedError(f"{path}: cannot be written: {error.strerror or error}")


def _broken(url: str, path: Path, reason: str) -> EnvironmentFailedError:
    remedy = "; the same command continues from there" if path.exists() else ""
    return EnvironmentFailedError(f"{url}: the connection broke: {reason}{remedy}")


class _HttpsRedirects(HTTPRedirectHandler):
    """Follows redirects to https only."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Create the next request; raises InvalidReleaseError if it is not https."""
        if urlsplit(newurl).scheme != "https":
            raise InvalidReleaseError(f"the server redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


# -- Extracts the records and images of a data set from its repository's archive, and nothing else

MAX_TOTAL = 8 * 1024**3
"""The most bytes of all members together, extracted or not."""
LONGEST_NAME = 1000
"""The most characters of the name of a member; a file system has fewer in a path."""
IMAGES = "images"


def unpack(archive: Path, release: Release, folder: Path) -> None:
    """Extract the members of a .tar.gz that belong to a data set."""
    try:
        with gzip.open(archive) as content:
            with tarfile.open(fileobj=content, mode="r|") as members:
                _extract(members, release, folder)
            # gzip compares the checksum behind the last byte only when reading that far.
            while content.read(PIECE):
                pass
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidReleaseError(f"the archive is broken or incomplete ({error})") from None
    except OSError as error:
        raise EnvironmentFailedError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _extract(members: tarfile.TarFile, release: Release, folder: Path) -> None:
    total = 0
    for member in members:
        total += member.size
        if total > MAX_TOTAL:
            raise InvalidReleaseError(f"its content is more than {MAX_TOTAL:,} bytes")
        path = _path_in_folder(member.name, release)
        if path is None or member.isdir():
            continue
        if not member.isfile():
            raise InvalidReleaseError(f"{member.name} is a link or a device, not a file")
        if member.size > MAX_FILE:
            raise InvalidReleaseError(f"{member.name} has {member.size:,} bytes, more than {MAX_FILE:,}")
        members.extract(member.replace(name=path, deep=False), folder, filter="data")


def _path_in_folder(name: str, release: Release) -> str | None:
    """The path of a member in the data folder; None if it does not belong to the data set.

    All members are in one top folder, whose name contains the revision.
    """
    if len(name) > LONGEST_NAME:
        raise InvalidReleaseError(f"the name of a member has {len(name):,} characters")
    parts = PurePosixPath(name).parts
    path = "/".join(parts[1:])
    for file in release.contents:
        if path == file.path:
            return file.name
    if not release.images or not path.startswith(f"{release.images}/"):
        return None
    if ".." in parts or parts[0] == "/":
        raise InvalidReleaseError(f"{name} is outside the data folder")
    return IMAGES + path.removeprefix(release.images)
