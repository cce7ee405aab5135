"""Errors of writing files, such as those of a full disk: with the path and the remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from sightline.errors import EnvironmentFailedError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a full disk, and of a user's share of it."""


def cannot_write(path: object, error: OSError) -> EnvironmentFailedError:
    """The error of a file that cannot be written."""
    remedy = "; make room, then run the same command again" if error.errno in NO_ROOM else ""
    return EnvironmentFailedError(f"{path}: cannot be written: {error.strerror or error}{remedy}")


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Name the path in errors of the operating system, whose own text has none after the file was opened."""
    try:
        yield
    except OSError as error:
        raise cannot_write(error.filename or path, error) from None
