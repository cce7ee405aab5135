"""The records of a comparison of runs with and without adapters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sightline.results.comparison import Comparison


class AdapterRuns(NamedTuple):
    """Pairs of runs of a task, such as "mmr3:restyling".

    `runs` holds the numbers of a run without and of a run with each adapter. `unmatched` are runs with an
    adapter that are newer than those in `runs`, and that have no comparable run without it.
    """

    task: str
    runs: Sequence[tuple[int, int]]
    unmatched: Sequence[int] = ()


class AdapterComparison(NamedTuple):
    """The comparison of pairs of runs, and what it leaves out on both sides.

    `refused` counts the requests that a run with an adapter refused because of a training image, and
    `groups` the groups of these requests.
    """

    runs: AdapterRuns
    comparison: Comparison
    refused: int
    groups: int
