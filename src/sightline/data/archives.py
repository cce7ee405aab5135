"""Downloads an archive by HTTP, if interrupted from where it ended, and extracts a data set from it."""

from __future__ import annotations

import asyncio
import gzip
import re
import tarfile
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING
from urllib.parse import urljoin

from yarl import URL

from sightline.benchmarks.base import Release
from sightline.errors import EnvironmentFailedError
from sightline.models.http_client import CallError, HTTPClient, Timeouts, environment_proxy
from sightline.progress import progress

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_SECONDS = 60.0
"""The longest wait for data from a server."""
MAX_BYTES = 2 * 1024**3
MAX_FILE = 128 * 1024**2
MAX_REQUESTS = 10
"""How many requests a download may take, with those that are redirected."""
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
    asyncio.run(_download(_checked(url), path, limit, timeout, show_progress))


def _checked(url: str) -> str:
    """The URL, without a user name and a password, which would be repeated in messages."""
    try:
        user = URL(url).user
    except ValueError:
        raise InvalidReleaseError("this is not a URL") from None
    if user is not None:
        raise InvalidReleaseError("a URL with a user name or a password cannot be used")
    return url


async def _download(url: str, path: Path, limit: int, timeout: float, show_progress: bool) -> None:
    done = path.stat().st_size if path.exists() else 0
    is_open = False
    try:
        async with _opened(url, done, timeout) as response:
            is_open = True
            if response is not None:
                await _receive(response, url, path, done, limit, show_progress)
    except CallError as error:
        if is_open:
            raise _broken(url, path, f"{path.stat().st_size:,} bytes received: {error}") from None
        raise EnvironmentFailedError(
            f"{url}: cannot be reached: {error}; use --from FILE with a copy of the archive"
        ) from None


@asynccontextmanager
async def _opened(url: str, done: int, timeout: float) -> AsyncIterator[aiohttp.ClientResponse | None]:
    """Request the file from byte `done` on, also where it has moved; None if nothing is left to send."""
    headers = {"Range": f"bytes={done}-"} if done else {}
    timeouts = Timeouts(None, timeout, silence=timeout)
    for _ in range(MAX_REQUESTS):
        client = HTTPClient(url, None, timeouts, proxy=environment_proxy(url), decompress=False)
        async with aclosing(client), client.request("GET", "", headers=headers) as response:
            if response.status in (200, 206):
                yield response
                return
            if response.status == 416 and headers:
                if response.headers.get("Content-Range") == f"bytes */{done}":
                    yield None
                    return
                headers = {}
            elif 300 <= response.status < 400 and (location := response.headers.get("Location")):
                url = urljoin(url, location)
                if not url.startswith("https://"):
                    raise InvalidReleaseError(f"the server redirects to {url}, which is not https")
            else:
                raise InvalidReleaseError(f"the server answers {response.status} {response.reason}")
    raise InvalidReleaseError(f"the server redirects more than {MAX_REQUESTS} times")


async def _receive(
    response: aiohttp.ClientResponse, url: str, path: Path, done: int, limit: int, show_progress: bool
) -> None:
    start = _start(response)
    if response.status == 206 and start != done:
        path.unlink()
        raise EnvironmentFailedError(
            f"{url}: the server sent another range than requested; the same command starts again"
        )
    total = None if response.content_length is None else start + response.content_length
    if (total or 0) > limit:
        raise InvalidReleaseError(f"it has {total:,} bytes, more than {limit:,}")
    with (
        _open_file(path, start) as file,
        progress("archive", total, "bytes", done=start, show_progress=show_progress) as advance,
    ):
        size, counted, since = start, start, time.monotonic()
        async for piece in response.content.iter_any():
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


def _start(response: aiohttp.ClientResponse) -> int:
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
