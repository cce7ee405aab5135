"""A set of request keys that takes eight bytes a key."""

from __future__ import annotations

import numpy as np

_RECENT = 1 << 16
"""Keys that are held as numbers of Python before they join the sorted array."""


class KeySet:
    """A set of request keys, told apart by their first 64 bits."""

    def __init__(self) -> None:
        self._sorted = np.zeros(0, dtype=np.uint64)
        self._recent: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    def __contains__(self, key: str) -> bool:
        number = _number(key)
        if number in self._recent:
            return True
        place = np.searchsorted(self._sorted, np.uint64(number))
        return bool(place < len(self._sorted) and self._sorted[place] == number)

    def add(self, key: str) -> None:
        """Add a key.

        Args:
            key: The key of a request, in hexadecimal digits.
        """
        if key not in self:
            self._recent.add(_number(key))
        if len(self._recent) >= _RECENT:
            self._settle()

    def update(self, other: KeySet) -> None:
        other._settle()
        self._settle()
        self._sorted = np.union1d(self._sorted, other._sorted)

    def _settle(self) -> None:
        recent = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
        self._sorted = np.union1d(self._sorted, recent)
        self._recent.clear()


def _number(key: str) -> int:
    return int(key[:16], 16)
