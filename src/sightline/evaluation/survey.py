"""What the first pass over the samples of an evaluation finds: digests, counts, folders of images, notes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.released import foreign_samples
from sightline.errors import UserError
from sightline.evaluation.prepared import PreparedTask, Survey
from sightline.formats.digests import SetDigest
from sightline.plugins import wrong_return
from sightline.types import Probe, Sample

_encoder = msgspec.json.Encoder(order="sorted")


Check = Callable[[Probe], None]
"""Raises UserError for a probe that the model cannot be asked."""


def survey_samples(task: PreparedTask, check: Check | None) -> Survey:
    """Read all samples of a task once, and check them and their probes.

    Args:
        check: The check of probes; None if no model is called.
    """
    benchmark, options = task.benchmark, task.options.benchmark
    surveyor = Surveyor(benchmark, options, check)
    if not task.samples.read_all(surveyor.add):
        raise UserError(f"the {task.split} split of {benchmark.name} contains no samples", file=task.folder)
    names = (sample.id for sample in task.samples)
    return replace(
        surveyor.found(),
        is_foreign=bool(foreign_samples(benchmark, names, task.folder, task.split, options)),
        left_out=tuple(benchmark.left_out_notes(task.folder, task.split, options)),
    )


class Surveyor:
    """Surveys samples one by one, and checks their probes."""

    def __init__(self, benchmark: Benchmark, options: Mapping[str, Any], check: Check | None) -> None:
        """Start without samples.

        Args:
            check: The check of probes; None if no model is called: then only the probes of the first sample
                are made.
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
        """Survey a sample."""
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
        """What was found so far."""
        ids = self._ids.copy()
        ids.update(b"]" if self._samples else b"[]")
        return Survey(
            data_digest=self._data.hexdigest(),
            ids_digest=ids.hexdigest(),
            samples=self._samples,
            probes=self._probes,
            folders=tuple(sorted(self._folders)),
        )
