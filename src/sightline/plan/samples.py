"""The samples of an evaluation: few are held, many are read again at each pass."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np
from msgspec import Struct

from sightline.benchmarks.base import Benchmark
from sightline.errors import UserError
from sightline.plugins import wrong_return
from sightline.types import Sample

HELD = 4096
"""The number of samples that are held at most, where the benchmark itself does not hold them all."""

_encode = msgspec.json.Encoder(order="deterministic").encode

Read = Callable[[], Iterable[Sample]]
"""Starts a pass over all samples of a split."""


class SampleSelection(Struct, frozen=True):
    """The samples that are taken: all, the first `limit` ones, or, with `shuffle`, random ones."""

    limit: int | None = None
    shuffle: bool = False
    seed: int = 0

    def has(self, position: int) -> bool:
        """Whether the sample at a position is known to be selected before all samples were counted."""
        return not self.shuffle and (self.limit is None or position < self.limit)

    def positions(self, total: int) -> Sequence[int]:
        """The positions of the selected samples."""
        if self.limit is None or self.limit >= total:
            return range(total)
        if not self.shuffle:
            return range(self.limit)
        return array("q", sorted(random.Random(self.seed).sample(range(total), self.limit)))


class Samples:
    """The selected samples of a benchmark, which can be read any number of times.

    The first pass checks all samples. If there are more than HELD, each later pass reads the data again and
    checks that it is the same samples. A benchmark that returns a list holds its samples itself.
    """

    def __init__(self, benchmark: Benchmark, read: Read, selection: SampleSelection) -> None:
        self._benchmark = benchmark
        self._read = read
        self._selection = selection
        self._positions: Sequence[int] | None = None
        self._held: list[Sample] | None = None
        self._contents = array("q")

    def read_all(self, visit: Callable[[Sample], None] = lambda sample: None) -> Sequence[int]:
        """Read all samples once, and check that no two have the same id: they would merge into one group."""
        benchmark, selection = self._benchmark, self._selection
        found = self._read()
        held: list[Sample] | None = []
        may_change = not isinstance(found, Sequence)
        hashes, contents = array("q"), array("q")
        for sample in found:
            if not isinstance(sample, Sample):
                raise wrong_return(benchmark.samples, sample, Sample)
            if selection.has(len(hashes)):
                visit(sample)
            hashes.append(hash(sample.id))
            if may_change:
                contents.append(_content_hash(sample))
            if held is not None:
                held.append(sample)
                if len(held) > HELD and may_change:
                    held = None
        distinct, counts = np.unique(np.frombuffer(hashes, np.int64), return_counts=True)
        self._refuse_repeated(set(distinct[counts > 1].tolist()))
        self._positions = positions = selection.positions(len(hashes))
        self._held = None if held is None else [held[position] for position in positions]
        self._contents = contents if held is None else array("q")
        if selection.shuffle:
            for sample in self:
                visit(sample)
        return positions

    def __iter__(self) -> Iterator[Sample]:
        """Start a pass. Raises UserError as `read_all`, and where the data changed since the first pass."""
        positions = self._positions if self._positions is not None else self.read_all()
        return iter(self._held) if self._held is not None else self._again(positions)

    def _again(self, positions: Sequence[int]) -> Iterator[Sample]:
        position = 0
        samples = iter(self._read())
        for selected in positions:
            sample = next(islice(samples, selected - position, None), None)
            position = selected + 1
            if sample is None or _content_hash(sample) != self._contents[selected]:
                raise UserError(
                    "the data changed while they were evaluated",
                    record=f"sample {position}",
                    found=sample.id if sample is not None else None,
                    expected="data that stay the same; run the same command again",
                )
            yield sample

    def _refuse_repeated(self, hashes: set[int]) -> None:
        """Raise UserError where two of the samples with these hashes have the same id."""
        seen: set[str] = set()
        for sample in self._read() if hashes else ():
            if hash(sample.id) in hashes:
                if sample.id in seen:
                    raise UserError(
                        f"two samples of {self._benchmark.name} have the same id",
                        record=sample.id,
                        field="id",
                    )
                seen.add(sample.id)


def _content_hash(sample: Sample) -> int:
    """The hash of everything that a sample holds, in this process. Equal ids may have other references."""
    return hash(_encode(sample))
