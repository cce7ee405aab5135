"""The public data sets that the installed benchmarks declare."""

from __future__ import annotations

from sightline.benchmarks.release import Release
from sightline.registry import benchmark_class, benchmark_names


def releases() -> dict[str, Release]:
    """List the public data sets."""
    declared = {name: benchmark_class(name).release for name in benchmark_names()}
    return {name: release for name, release in declared.items() if release is not None}
