"""Takes the records and images of a data set out of its repository's archive, and nothing else."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from sightline.benchmarks.release import Release
from sightline.data.download import PIECE, Refused
from sightline.errors import EnvironmentFailedError
from sightline.images import MAX_BYTES as MAX_FILE

MAX_TOTAL = 8 * 1024**3
"""Bytes of all members together, wanted or not."""
IMAGES = "images"


def unpack(archive: Path, source: Release, folder: Path) -> None:
    """Write the wanted members of a .tar.gz into `folder`, in the layout that benchmarks read.

    Raises Refused where the archive is broken, cut off or too large, or where a wanted member is no plain
    file or leads out of the folder; EnvironmentFailedError where the disk refuses.
    """
    try:
        with gzip.open(archive) as content:
            with tarfile.open(fileobj=content, mode="r|") as members:
                _extract(members, source, folder)
            # The archive's own checksum stands behind its last byte and is compared on reading that far.
            while content.read(PIECE):
                pass
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"the archive is broken or cut off ({error})") from None
    except OSError as error:
        raise EnvironmentFailedError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _extract(members: tarfile.TarFile, source: Release, folder: Path) -> None:
    total = 0
    for member in members:
        total += member.size
        if total > MAX_TOTAL:
            raise Refused(f"its content is more than {MAX_TOTAL:,} bytes")
        place = _place(member.name, source)
        if place is None or member.isdir():
            continue
        if not member.isfile():
            raise Refused(f"{member.name} is a link or a device, not a file")
        if member.size > MAX_FILE:
            raise Refused(f"{member.name} has {member.size:,} bytes, more than {MAX_FILE:,}")
        members.extract(member.replace(name=place, deep=False), folder, filter="data")


def _place(name: str, source: Release) -> str | None:
    """Where a member belongs in the data folder; None where it is not wanted.

    Members lie in one folder whose name tells the revision.
    """
    parts = PurePosixPath(name).parts
    path = "/".join(parts[1:])
    for file in source.contents:
        if path == file.path:
            return file.name
    if not source.images or not path.startswith(f"{source.images}/"):
        return None
    if ".." in parts or parts[0] == "/":
        raise Refused(f"{name} leads out of the data folder")
    return IMAGES + path.removeprefix(source.images)
