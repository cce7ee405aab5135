"""Images on a node: the shared file where there is one, otherwise a copy of the bytes that were sent."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from msgspec.structs import replace

from sightline.formats.digests import file_digest_or_error
from sightline.formats.files import write_atomically
from sightline.types import ImageFile


def image_on_node(path: str, digest: str, content: bytes | None) -> str | None:
    """Find an image on this machine.

    Args:
        path: Its path on the machine of the driver.
        digest: The SHA-256 of its content.
        content: Its bytes, None if the driver did not send them.

    Returns:
        The path if the file there has this content, otherwise that of a copy; None without content.
    """
    if file_digest_or_error(path) == digest:
        return path
    if content is None:
        return None
    copy = os.path.join(_copies(), digest + os.path.splitext(path)[1])
    if file_digest_or_error(copy) != digest:
        write_atomically(Path(copy), [content])
    return copy


def at_path(image: ImageFile, path: str) -> ImageFile:
    """Give an image another path, and the stamp of the file there.

    Args:
        image: The image.
        path: A file with the same content.

    Returns:
        The image at that path.
    """
    status = os.stat(path)
    return replace(image, path=path, stamp=(status.st_size, status.st_mtime_ns))


def _copies() -> str:
    """The folder of copies of this process, which ends with it."""
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="sightline-")
    return _folder.name


_folder: tempfile.TemporaryDirectory[str] | None = None
