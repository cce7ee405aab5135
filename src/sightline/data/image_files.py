"""Writes images into a data folder: never outside it, and under the final name only when complete."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from sightline.data.archive_download import write_error
from sightline.data.download_error import DownloadError
from sightline.data.image_manifest import MissingImage
from sightline.formats.digests import text_digest

_PARTIAL = "sightline-"
_BAD_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
"""The system's errors for a name that no file can have here, whatever the disk and the permissions are."""


def refused_paths(requested: Mapping[str, str]) -> Iterator[tuple[str, MissingImage]]:
    """Find URLs whose path is outside the folder of images, or is used by an earlier URL."""
    used: dict[str, str] = {}
    for url, path in requested.items():
        parts = PurePosixPath(path).parts
        if len(parts) < 2 or parts[0] == "/" or ".." in parts or "\0" in path:
            yield url, MissingImage(path, "name refused", "is outside the folder of images")
        elif path.casefold() in used:
            yield url, MissingImage(path, "name refused", f"is used by {used[path.casefold()]} already")
        else:
            used[path.casefold()] = url


def partial_path(final: Path, url: str) -> Path:
    """Name the file that an image is written to before it is complete."""
    return final.with_name(f"{_PARTIAL}{text_digest(url)[:16]}.part")


def remove_partial_files(finals: Iterable[Path]) -> None:
    """Remove the incomplete files that killed processes left behind."""
    for folder in {final.parent for final in finals}:
        # A folder whose name is invalid holds nothing.
        with suppress(DownloadError), _name_errors(folder):
            for pattern in (f"{_PARTIAL}*.part", f".{_PARTIAL}*.tmp"):
                for partial in folder.glob(pattern):
                    partial.unlink()


def create_parent(final: Path, folder: Path) -> None:
    """Create the folder of an image."""
    parent = os.path.realpath(final.parent)
    if not parent.startswith(os.path.join(os.path.realpath(folder), "")):
        raise DownloadError("name refused", f"is outside {folder}: {final.parent}")
    with _name_errors(final):
        final.parent.mkdir(parents=True, exist_ok=True)


def copy_image(origin: Path, partial: Path) -> None:
    """Copy an image of another folder to its partial path; fails as `create_parent` does."""
    with _name_errors(partial):
        shutil.copyfile(origin, partial)


def move_to_final(partial: Path, final: Path) -> None:
    """Give a complete image its final name; fails as `create_parent` does."""
    with _name_errors(final):
        partial.replace(final)


@contextmanager
def _name_errors(path: Path) -> Iterator[None]:
    """Raise DownloadError for an invalid name, and EnvironmentFailedError for any other disk error."""
    try:
        yield
    except OSError as error:
        if error.errno in _BAD_NAME:
            raise DownloadError("name refused", f"{error.strerror}: {path}") from None
        raise write_error(path, error) from None
