"""What one pass over the samples of an evaluation finds: digests, the number of probes, folders of images."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from sightline.benchmarks.base import Benchmark
from sightline.plugins import wrong_return
from sightline.results.data_digest import SetDigest
from sightline.types import Probe, Sample

_encoder = msgspec.json.Encoder(order="sorted")


class Survey(Struct, frozen=True, kw_only=True):
    """What the samples of an evaluation are.

    Attributes:
        data_digest: The digest of questions, options, references, labels and released records, in any order
            of the samples; images count by their file names.
        ids_digest: The SHA-256 of the ids in their order.
        probes: The number of probes of all samples under the evaluated setting; 0 if no model is called.
        folders: The data folders of their images.
    """

    data_digest: str
    ids_digest: str
    probes: int
    folders: tuple[str, ...]


class Surveyor:
    """Surveys samples one by one, and checks their probes."""

    def __init__(
        self, benchmark: Benchmark, options: Mapping[str, Any], check: Callable[[Probe], None] | None
    ) -> None:
        """Start without samples.

        Args:
            benchmark: The benchmark.
            options: Its effective options.
            check: Raises UserError for a probe that the model cannot be asked; None if no model is called:
                then only the probes of the first sample are made.
        """
        self._benchmark = benchmark
        self._options = options
        self._check = check
        self._data = SetDigest()
        self._ids = hashlib.sha256()
        self._samples = 0
        self._probes = 0
        self._folders: set[str] = set()

    def add(self, sample: Sample) -> None:
        """Survey a sample.

        Args:
            sample: The sample.

        Raises:
            UserError: A probe cannot be asked, or a plugin returned something else.
        """
        self._ids.update(b"," if self._samples else b"[")
        self._ids.update(_encoder.encode(sample.id))
        self._folders.update(image.root for image in sample.images if image.root)
        data = self._benchmark.in_order(sample)
        names = [os.path.basename(image.path) for image in data.images]
        body = [data.id, data.question, names, data.references, data.options, data.labels]
        self._data.add(_encoder.encode([*body, data.record]))
        if self._check is not None or not self._samples:
            for probe in self._benchmark.probes(sample, self._options):
                if not isinstance(probe, Probe):
                    raise wrong_return(self._benchmark.probes, probe, Probe)
                if self._check is not None:
                    self._check(probe)
                    self._probes += 1
        self._samples += 1

    def found(self) -> Survey:
        """What was found so far.

        Returns:
            The survey.
        """
        ids = self._ids.copy()
        ids.update(b"]" if self._samples else b"[]")
        return Survey(
            data_digest=self._data.hexdigest(),
            ids_digest=ids.hexdigest(),
            probes=self._probes,
            folders=tuple(sorted(self._folders)),
        )
