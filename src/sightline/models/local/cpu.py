"""Threads and memory of this machine's processor, set for the whole process while a model runs on it."""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's numbers of these options: malloc.h, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD."""

_KEEP_BYTES = 1 << 30
"""Bytes that malloc keeps: more than the memory that one layer frees."""


def share_threads(most: int) -> int:
    """Divide the processor's threads among parallel batches, and keep freed memory."""
    import torch

    batches = min(most, _threads())
    torch.set_num_threads(_threads() // batches)
    _keep_memory()
    return batches


def release() -> None:
    """Let torch use all threads again."""
    import torch

    torch.set_num_threads(_threads())


@cache
def _threads() -> int:
    """torch's default number of threads, cached because torch later reports the number that was set."""
    import torch

    return torch.get_num_threads()


def _keep_memory() -> None:
    """Let malloc keep the memory that tensors free.

    glibc returns it to the system at each layer and takes it back at the next, page by page; with two
    batches at work each waits for the other's pages. Other C libraries have no such setting.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEEP_BYTES)
    mallopt(_MMAP_THRESHOLD, _KEEP_BYTES)
