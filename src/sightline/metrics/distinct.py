"""The distinct numbers of an array, without the import that numpy's function needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """The distinct numbers of an array, as `np.unique` returns them.

    `np.unique` imports numpy.ma at its first call, which takes 40 ms of a run of two seconds.

    Args:
        numbers: An array of shape (n,) without NaN.

    Returns:
        Its distinct numbers, the smallest first.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]
