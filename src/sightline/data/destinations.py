"""Where an image is put: into the data folder or nowhere, and under its name only when it is whole."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from sightline.data.download import unwritable
from sightline.data.errors import DownloadError
from sightline.data.image_manifest import Lost

_PART = "sightline-"
_NO_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
"""What the system says of a name that no file can have here, disk and rights aside."""


def unusable(wanted: Mapping[str, str]) -> Iterator[tuple[str, Lost]]:
    """The urls whose path is none in a folder of the data folder, or is another url's."""
    taken: dict[str, str] = {}
    for url, path in wanted.items():
        parts = PurePosixPath(path).parts
        if len(parts) < 2 or parts[0] == "/" or ".." in parts or "\0" in path:
            yield url, Lost(path, "name refused", "leads out of the folder of images")
        elif path.casefold() in taken:
            yield url, Lost(path, "name refused", f"is that of {taken[path.casefold()]} already")
        else:
            taken[path.casefold()] = url


def part_of(final: Path, url: str) -> Path:
    """Where an image is written before it has its name: beside it, under a name that is never too long."""
    return final.with_name(f"{_PART}{hashlib.sha256(url.encode()).hexdigest()[:16]}.part")


def sweep(finals: Iterable[Path]) -> None:
    """Remove what killed processes left half-written beside the images."""
    for place in {final.parent for final in finals}:
        # A folder that no name can have holds nothing.
        with suppress(DownloadError), _named(place):
            for pattern in (f"{_PART}*.part", f".{_PART}*.tmp"):
                for left in place.glob(pattern):
                    left.unlink()


def make_room(final: Path, folder: Path) -> None:
    """Make the folder of an image.

    Missed where a link leads out of the data folder or the name is none on this disk, EnvironmentFailedError where
    the disk refuses.
    """
    place = os.path.realpath(final.parent)
    if not place.startswith(os.path.join(os.path.realpath(folder), "")):
        raise DownloadError("name refused", f"leads out of {folder}: {final.parent}")
    with _named(final):
        final.parent.mkdir(parents=True, exist_ok=True)


def copy(origin: Path, part: Path) -> None:
    """Copy an image from elsewhere, to where it is before it has its name; Missed as `make_room`."""
    with _named(part):
        shutil.copyfile(origin, part)


def rename(part: Path, final: Path) -> None:
    """Give a whole image its name; Missed as `make_room`."""
    with _named(final):
        part.replace(final)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Missed where the disk refuses for the name's sake, EnvironmentFailedError where for any other."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_NAME:
            raise DownloadError("name refused", f"{error.strerror}: {path}") from None
        raise unwritable(path, error) from None
