"""Extracts the records and images of a data set from its repository's archive, and nothing else."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from sightline.benchmarks.release import Release
from sightline.data.archive_download import PIECE, InvalidReleaseError
from sightline.errors import EnvironmentFailedError
from sightline.images import MAX_BYTES as MAX_FILE

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
