"""Images on a node: the shared file where there is one, otherwise a copy of the bytes that were sent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from sightline.formats.digests import file_digest_or_error
from sightline.formats.write_errors import writing
from sightline.images import check_content
from sightline.types import ImageFile


@contextmanager
def image_on_node(path: str, digest: str, content: bytes | None) -> Iterator[str | None]:
    """Find an image on this machine.

    Args:
        content: Its bytes, None if the driver did not send them.

    Yields:
        The path if the file there has this content, otherwise that of a copy, which is removed afterwards;
        None without content.
    """
    if file_digest_or_error(path) == digest:
        yield path
    elif content is None:
        yield None
    else:
        check_content(path, content, digest)
        with ExitStack() as stack:
            with writing("the folder of temporary files (TMPDIR)"):
                folder = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="sightline-", ignore_cleanup_errors=True)
                )
                copy = Path(folder, f"image{os.path.splitext(path)[1]}")
                with writing(copy):
                    copy.write_bytes(content)
            yield str(copy)


def at_path(image: ImageFile, path: str) -> ImageFile:
    status = os.stat(path)
    return replace(image, path=path, stamp=(status.st_size, status.st_mtime_ns))
