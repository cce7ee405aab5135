"""This machine's processors and memory, as a model that runs on them uses them: for the whole process."""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's names for these numbers: malloc.h, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD."""

_KEPT = 1 << 30
"""Bytes: larger than what a layer leaves behind."""


def occupy(ways: int) -> None:
    """Work for so many batches at a time: each with its share of the threads, memory kept for the next."""
    import torch

    torch.set_num_threads(max(1, _threads() // ways))
    _keep_memory()


def release() -> None:
    """Give the threads back to whoever works with torch next."""
    import torch

    torch.set_num_threads(_threads())


@cache
def _threads() -> int:
    """As many as torch takes by itself: asked once, as it answers with what it was last told."""
    import torch

    return torch.get_num_threads()


def _keep_memory() -> None:
    """Have malloc keep what tensors leave behind.

    glibc gives it back to the system at each layer and takes it again at the next, page by page; with two
    batches at work each waits for the other's pages. Other C libraries have no such setting.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_MMAP_THRESHOLD, _KEPT)
