"""Hashes of many texts in few bytes, to find texts that occur twice."""

from __future__ import annotations

from array import array

_FEW = 1 << 16
"""As many hashes are compared without numpy, whose import takes longer."""


def text_hash(text: str) -> int:
    """The hash of a text in this process: 64 bits, with a sign. Different texts may share it.

    Args:
        text: The text.

    Returns:
        The hash.
    """
    return hash(text)


def has_repeats(hashes: array[int]) -> bool:
    """Whether a hash occurs twice.

    Args:
        hashes: The hashes, of type 'q'.

    Returns:
        Whether two are equal.
    """
    if len(hashes) <= _FEW:
        return len(set(hashes)) < len(hashes)
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, np.int64))
    return bool((ordered[1:] == ordered[:-1]).any())


def repeated_hashes(hashes: array[int]) -> set[int]:
    """The hashes that occur twice or more.

    Args:
        hashes: The hashes, of type 'q'.

    Returns:
        Each of them once; none for different hashes.
    """
    if not has_repeats(hashes):
        return set()
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, np.int64))
    return set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
