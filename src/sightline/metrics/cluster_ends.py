"""When a cluster is complete: the groups of a cluster mostly follow each other, but not always."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from zlib import crc32

import numpy as np

Stretches = Mapping[int, int]
"""The checksum of a cluster -> its number of stretches, for the clusters with several.

A stretch is a series of neighbours of one cluster.
"""


def count_stretches(clusters: Iterable[str]) -> Stretches:
    """Find the clusters that appear again after others.

    It keeps four bytes per stretch while it counts. Clusters that share a checksum are counted together: the
    first of them is complete when the last one is.

    >>> count_stretches("aabcc")
    {}
    >>> list(count_stretches("aabcca").values())
    [2]
    """
    checksums, last = array("I"), None
    for cluster in clusters:
        if cluster != last:
            checksums.append(_checksum(cluster))
            last = cluster
    if not checksums:
        return {}
    ordered = np.frombuffer(checksums, dtype=np.uint32)
    ordered.sort()
    repeated, further = np.unique(ordered[1:][ordered[1:] == ordered[:-1]], return_counts=True)
    return dict(zip(repeated.tolist(), (further + 1).tolist(), strict=True))


class OpenClusters:
    """The clusters of a stream of groups that later groups may belong to, by number."""

    def __init__(self, stretches: Stretches | None) -> None:
        """Start before the first group.

        Args:
            stretches: The stretches of the clusters that appear again. Groups may be left out of the stream
                since they were counted. None if they were not counted: every cluster then stays open.
        """
        self._left = None if stretches is None else dict(stretches)
        self._numbers: dict[str, int] = {}
        self._entered = 0
        self._last: str | None = None

    def number(self, cluster: str) -> int:
        """The number of the cluster of the next group."""
        if cluster == self._last:
            return self._numbers[cluster]
        self._last = cluster
        if self._left and (checksum := _checksum(cluster)) in self._left:
            self._left[checksum] -= 1
        if cluster not in self._numbers:
            self._numbers[cluster] = self._entered
            self._entered += 1
        return self._numbers[cluster]

    def close(self) -> list[int]:
        """Forget the clusters that are complete.

        Returns:
            The numbers of the clusters that are still open, in ascending order.
        """
        left = self._left
        if left is not None:
            self._numbers = {
                cluster: number
                for cluster, number in self._numbers.items()
                if cluster == self._last or (left and left.get(_checksum(cluster), 0) > 0)
            }
        return list(self._numbers.values())


def _checksum(cluster: str) -> int:
    return crc32(cluster.encode("utf-8", "surrogatepass"))
