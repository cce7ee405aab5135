"""From samples to requests: which probes there are, and under which keys their answers lie."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.clusters import cluster_of, standing_for
from sightline.engine.image_cache import inspect_images
from sightline.engine.keys import KeyedRequest, key_of, with_key
from sightline.engine.store import Store
from sightline.images import BadImage, transform_for
from sightline.models.augmented import Augmented
from sightline.models.base import Model
from sightline.plan.stored_probe import StoredProbe, judge_images, stored_probe
from sightline.types import ImageFile, ImageRef, Message, Origin, Probe, Request, Sample, user

CHUNK = 64
"""Samples planned together."""


class Part(Struct, frozen=True):
    """How one setting is asked: its name, the benchmark options, and the sampling that is sent."""

    setting: str
    options: Mapping[str, Any]
    sampling: Mapping[str, Any]


class Plan:
    """The probes of an evaluation, made chunk by chunk: images are looked at, never held."""

    def __init__(
        self,
        benchmark: Benchmark,
        samples: Sequence[Sample],
        part: Part,
        partners: Sequence[Part],
        model: Model,
        store: Store,
        *,
        repeats: int = 1,
        fresh: str = "",
        augmented: Augmented | None = None,
        records: bool = True,
    ) -> None:
        """`augmented` holds the images in words, where the model is not to see them; `records` says whether
        what is seen of image files may be written to the store."""
        self.benchmark = benchmark
        self.samples = samples
        self._part = part
        self._partners = partners
        self._model = model
        self._store = store
        self._repeats = repeats
        self._fresh = fresh
        self._augmented = augmented
        self._records = records
        self._files: dict[str, ImageFile | BadImage] = {}

    def chunks(self) -> Iterator[list[tuple[int, list[tuple[StoredProbe, KeyedRequest | None]]]]]:
        """Samples in chunks: the index of each, with its rows and, where it can be asked, its requests.

        Samples that show the same image are neighbours, so that a server can reuse what it has read.
        """
        order = _neighbours(self.samples)
        for first in range(0, len(order), CHUNK):
            chunk = order[first : first + CHUNK]
            asked = {index: self._asked(self.samples[index]) for index in chunk}
            self._look_at(
                [image for index in chunk for image in standing_for(self.samples[index])]
                + [
                    image
                    for settings in asked.values()
                    for probes in settings.values()
                    for probe in probes
                    for image in (*_images(probe), *probe.evidence)
                ]
            )
            yield [(index, self._sample(self.samples[index], asked[index])) for index in chunk]

    def _asked(self, sample: Sample) -> dict[str, list[Probe]]:
        """The probes of a sample by setting, its own first."""
        return {
            part.setting: list(self.benchmark.probes(sample, part.options))
            for part in (self._part, *self._partners)
        }

    def _sample(
        self, sample: Sample, asked: Mapping[str, list[Probe]]
    ) -> list[tuple[StoredProbe, KeyedRequest | None]]:
        cluster = cluster_of(sample, self._files)
        made: list[tuple[StoredProbe, KeyedRequest | None]] = []
        for members in grouped(asked[self._part.setting], range(self._repeats)):
            partners = {
                part.setting: tuple(
                    self._row(probe, draw, part, cluster)[0]
                    for probe, draw in partner_draws(asked[part.setting], members[0][1])
                )
                for part in self._partners
            }
            own = [self._row(probe, draw, self._part, cluster) for probe, draw in members]
            made.append((replace(own[0][0], partners=partners), own[0][1]))
            made.extend(own[1:])
        return made

    def _row(
        self, probe: Probe, draw: int, part: Part, cluster: str
    ) -> tuple[StoredProbe, KeyedRequest | None]:
        keyed = self._keyed(probe, draw, part)
        if isinstance(keyed, BadImage):
            return stored_probe(probe, draw, _unaskable(probe, draw), cluster, error=str(keyed)), None
        shown = judge_images(probe, self._files)
        return stored_probe(probe, draw, keyed.request.key, cluster, evidence=shown), keyed

    def _keyed(self, probe: Probe, draw: int, part: Part) -> KeyedRequest | BadImage:
        origin = Origin(self.benchmark.name, part.setting, probe.sample, probe.variant, draw)
        shown = self._shown(probe, origin)
        if isinstance(shown, BadImage):
            return shown
        messages, images = shown
        request = Request("", messages, part.sampling, images, draw, origin, probe.choices)
        return with_key(request, self._model.identity, self._fresh)

    def _shown(
        self, probe: Probe, origin: Origin
    ) -> tuple[tuple[Message, ...], Mapping[str, ImageFile]] | BadImage:
        """What the model is given of a probe: messages with their images, or one that cannot be shown."""
        if self._model.capabilities.replays:
            return (user(*(origin.benchmark, origin.setting, origin.sample, origin.variant)),), {}
        images: dict[str, ImageFile] = {}
        for image in _images(probe):
            file = self._files[image.path]
            if isinstance(file, BadImage):
                return file
            images[image.path] = file
        if self._augmented is None:
            return probe.messages, images
        try:
            return self._augmented.messages(probe.messages), {}
        except BadImage as error:
            return error

    def _look_at(self, images: Sequence[ImageRef]) -> None:
        """See to it that every image of a chunk was looked at, in this run or one before."""
        if len(self._files) > 64 * CHUNK:
            self._files.clear()
        new = {image.path: image for image in images if image.path not in self._files}
        limits = self._model.capabilities.limits
        for path, file in inspect_images(new, self._store, records=self._records).items():
            if isinstance(file, ImageFile) and (transform := transform_for(file, limits)):
                file = replace(file, transform=transform)
            self._files[path] = file


def grouped(probes: Sequence[Probe], draws: Sequence[int]) -> list[list[tuple[Probe, int]]]:
    """The probes of a sample and their draws, group by group: a draw of all, or all draws of one."""
    if any(probe.draws for probe in probes):
        return [[(probe, draw) for draw in draws] for probe in probes]
    return [[(probe, draw) for probe in probes] for draw in draws]


def partner_draws(probes: Iterable[Probe], draw: int) -> Iterator[tuple[Probe, int]]:
    """What of another setting a group of that draw is held against: the same draw, or all that it pools."""
    for probe in probes:
        yield from ((probe, number) for number in (range(probe.draws) if probe.draws else (draw,)))


def choose(samples: Sequence[Sample], limit: int | None, shuffle: bool, seed: int) -> list[Sample]:
    """The first `limit` samples (all where None), or as many drawn by `seed`; their order stays."""
    if limit is None or limit >= len(samples):
        return list(samples)
    if not shuffle:
        return list(samples[:limit])
    drawn = sorted(random.Random(seed).sample(range(len(samples)), limit))
    return [samples[index] for index in drawn]


def digest_of(samples: Sequence[Sample]) -> str:
    """The digest of what is asked about: questions, options, references, labels and released records."""
    digest = hashlib.sha256()
    for sample in samples:
        names = [os.path.basename(image.path) for image in sample.images]
        body = [sample.id, sample.question, names, sample.references, sample.options, sample.labels]
        digest.update(msgspec.json.encode([*body, sample.record], order="sorted"))
    return digest.hexdigest()


def _neighbours(samples: Sequence[Sample]) -> list[int]:
    """The samples in their order, those that share a first image pulled together."""
    first: dict[str, int] = {}
    leader = [
        first.setdefault(sample.images[0].path if sample.images else sample.id, index)
        for index, sample in enumerate(samples)
    ]
    return sorted(range(len(samples)), key=leader.__getitem__)


def _images(probe: Probe) -> list[ImageRef]:
    return [part for message in probe.messages for part in message.parts if isinstance(part, ImageRef)]


def _unaskable(probe: Probe, draw: int) -> str:
    """A key for a probe whose image is broken: of itself, so that verdicts and tables can name it."""
    return key_of(f"unaskable {probe.sample} {probe.variant} {draw}".encode())
