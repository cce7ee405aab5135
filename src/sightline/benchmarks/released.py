"""Whether samples are those of the paper, by the pinned digests of its released records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from sightline.benchmarks.base import Benchmark
from sightline.formats.digests import json_digest

DIGITS = 16
"""The number of hexadecimal digits of a pinned digest."""


def record_digest(sample: str, record: Any) -> str:
    """The digest of a released record."""
    return json_digest([sample, record])[:DIGITS]


def foreign_samples(
    benchmark: Benchmark,
    samples: Iterable[str],
    folder: Path | None,
    split: str,
    options: Mapping[str, Any],
) -> list[str]:
    """List the samples whose records the paper did not release in this form.

    A part of the released records, as --limit takes, has no foreign sample.

    Args:
        folder: The data folder, or None.

    Returns:
        The ids, in their order; none for a benchmark that pins no digests.
    """
    if benchmark.released_digests is None:
        return []
    pinned = pinned_digests(benchmark.released_digests)
    records = benchmark.released_records(folder, split, options)
    return [
        name for name in samples if name not in records or record_digest(name, records[name]) not in pinned
    ]


@cache
def pinned_digests(file: Path) -> frozenset[str]:
    """Read the pinned digests of a paper."""
    return frozenset(msgspec.json.decode(file.read_bytes(), type=list[str]))
