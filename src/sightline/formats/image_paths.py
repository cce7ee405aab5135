"""Paths of images in files of records: all of them are relative to a folder, and below it."""

from __future__ import annotations

import os


def is_below(path: str) -> bool:
    """Tell whether a path stays below the folder that it is relative to, whatever exists on the disk.

    >>> is_below("a/../b.png"), is_below("../b.png"), is_below("/b.png"), is_below("")
    (True, False, False, False)
    """
    plain = os.path.normpath(path)
    return not (os.path.isabs(plain) or plain.split(os.sep, 1)[0] in (os.curdir, os.pardir) or "\0" in path)
