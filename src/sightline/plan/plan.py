"""From samples to requests: the probes of an evaluation and the keys of their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.clusters import cluster_of
from sightline.engine.image_cache import inspect_images
from sightline.engine.keys import KeyedRequest, RequestFrame, key_of
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.asked import as_asked
from sightline.images import BadImage, transform_for
from sightline.models.augmented import Augmented
from sightline.models.base import Model
from sightline.plan.effective import EffectiveOptions
from sightline.plan.sample_digest import sample_digest
from sightline.plan.stored_probe import (
    StoredProbe,
    judge_images,
    probe_position,
    stored_groups,
    stored_probe,
)
from sightline.types import ImageFile, ImageRef, Message, Origin, Probe, Sample, user

SAMPLES_PER_CHUNK = 64
"""The number of samples that are planned together."""

WINDOW = 1024
"""The number of samples, in their order, among which those with the same image become neighbours."""


class PlanInputs(Struct, frozen=True, kw_only=True):
    """Everything that determines the requests of an evaluation.

    `settings` maps the evaluated setting, which comes first, and each other one that a metric reads to its
    options. `repeats` is the number of draws of each probe, `fresh` the tag of --fresh. `augmented` replaces
    images by text, for a model that gets text only.
    """

    benchmark: Benchmark
    samples: Iterable[Sample]
    settings: Mapping[str, EffectiveOptions]
    model: Model
    repeats: int = 1
    fresh: str = ""
    augmented: Augmented | None = None


class PlannedProbe(NamedTuple):
    """A probe of the plan: its position in the run, its record for the store, and its request.

    `request` is None where the probe cannot be asked; the record's `error` then says why.
    """

    position: int
    probe: StoredProbe
    request: KeyedRequest | None


class Plan:
    """The probes of an evaluation, made chunk by chunk. Images are inspected, and never held in memory."""

    def __init__(
        self,
        inputs: PlanInputs,
        store: Store,
        *,
        read_only: bool = False,
    ) -> None:
        self._inputs = inputs
        self._settings = inputs.settings
        self._frames = {
            setting: RequestFrame(inputs.model.identity, options.sampling, inputs.fresh)
            for setting, options in self._settings.items()
        }
        self._store = store
        self._read_only = read_only
        self._files: dict[str, ImageFile | BadImage] = {}

    def chunks(self) -> Iterator[list[PlannedProbe]]:
        """Plan all samples.

        Among WINDOW samples, those that show the same image are neighbours, so that a server can reuse its
        prefix cache.
        """
        numbered = enumerate(self._inputs.samples)
        while window := list(islice(numbered, WINDOW)):
            ordered = _order_by_image(window)
            for first in range(0, len(ordered), SAMPLES_PER_CHUNK):
                members = ordered[first : first + SAMPLES_PER_CHUNK]
                chunk = [(index, sample, self._probes(sample)) for index, sample in members]
                self._inspect(_chunk_images(chunk))
                yield [planned for member in chunk for planned in self._sample(*member)]

    def requests(self) -> Iterator[KeyedRequest]:
        """The requests of all samples, planned anew at each call."""
        for chunk in self.chunks():
            yield from (planned.request for planned in chunk if planned.request is not None)

    def probes(self) -> Iterator[StoredProbe]:
        """The probes of all samples, planned anew at each call."""
        for chunk in self.chunks():
            yield from (planned.probe for planned in chunk)

    def _probes(self, sample: Sample) -> dict[str, list[Probe]]:
        """The probes of a sample by setting, the evaluated one first."""
        benchmark = self._inputs.benchmark
        probes = {
            setting: list(benchmark.probes(sample, options.benchmark))
            for setting, options in self._settings.items()
        }
        for setting, members in probes.items():
            if len({probe.variant for probe in members}) < len(members):
                raise UserError(
                    f"two probes of a sample have the same variant in {benchmark.name}:{setting}",
                    record=sample.id,
                    field="variant",
                    expected="one name for each probe of a sample",
                )
        return probes

    def _sample(
        self, index: int, sample: Sample, probes: Mapping[str, list[Probe]]
    ) -> Iterator[PlannedProbe]:
        inputs = self._inputs
        cluster = cluster_of(sample, self._files)
        digest = sample_digest(inputs.benchmark, sample, self._files)
        replays = inputs.model.capabilities.replays
        requests: dict[str, KeyedRequest] = {}

        def store(setting: str, probe: Probe, draw: int) -> StoredProbe:
            origin = Origin(inputs.benchmark.name, setting, probe.sample, probe.variant, draw)
            probe = as_asked(probe, inputs.model.recorded(origin))
            keyed = self._request(probe, origin)
            if isinstance(keyed, BadImage):
                unsent, key = replace(probe, messages=()), _unaskable_key(probe, draw)
                return stored_probe(unsent, draw, key, cluster, digest, error=str(keyed))
            requests[keyed.request.key] = keyed
            sent = keyed.request.messages
            if not replays and sent is not probe.messages:
                probe = replace(probe, messages=sent)
            evidence = judge_images(probe, self._files)
            return stored_probe(probe, draw, keyed.request.key, cluster, digest, evidence=evidence)

        for number, stored in enumerate(stored_groups(probes, range(inputs.repeats), store)):
            yield PlannedProbe(probe_position(index, number), stored, requests.get(stored.key))

    def _request(self, probe: Probe, origin: Origin) -> KeyedRequest | BadImage:
        """The request of a probe, or the error of an image that cannot be sent."""
        content = self._content(probe, origin)
        if isinstance(content, BadImage):
            return content
        messages, images = content
        return self._frames[origin.setting].keyed(messages, images, origin.draw, origin, probe.choices)

    def _content(
        self, probe: Probe, origin: Origin
    ) -> tuple[tuple[Message, ...], Mapping[str, ImageFile]] | BadImage:
        """The messages and image files of a request, or the error of an image that cannot be sent."""
        if self._inputs.model.capabilities.replays:
            return (user(*(origin.benchmark, origin.setting, origin.sample, origin.variant)),), {}
        images: dict[str, ImageFile] = {}
        for image in _images(probe):
            file = self._files[image.path]
            if isinstance(file, BadImage):
                return file
            images[image.path] = file
        if self._inputs.augmented is None:
            return probe.messages, images
        try:
            return self._inputs.augmented.messages(probe.messages), {}
        except BadImage as error:
            return error

    def _inspect(self, images: Sequence[ImageRef]) -> None:
        """Compute, or look up, the digest and the transform of every image of a chunk."""
        if len(self._files) > 64 * SAMPLES_PER_CHUNK:
            self._files.clear()
        new = {image.path: image for image in images if image.path not in self._files}
        limits = self._inputs.model.capabilities.limits
        inspected = inspect_images(new, self._store, records=not self._read_only)
        for path, file in inspected.items():
            if isinstance(file, ImageFile) and (transform := transform_for(file, limits)):
                file = replace(file, transform=transform)
            self._files[path] = file


def _order_by_image(samples: Sequence[tuple[int, Sample]]) -> list[tuple[int, Sample]]:
    """Numbered samples in their order, with those that share a first image next to each other."""
    first: dict[str, int] = {}
    leader = {
        index: first.setdefault(sample.images[0].path if sample.images else sample.id, index)
        for index, sample in samples
    }
    return sorted(samples, key=lambda one: leader[one[0]])


def _chunk_images(chunk: Sequence[tuple[int, Sample, Mapping[str, Sequence[Probe]]]]) -> list[ImageRef]:
    """The images of a chunk: those of the samples, those of the messages, those that judges see."""
    return [
        *(image for _, sample, _ in chunk for image in sample.images),
        *(
            image
            for _, _, settings in chunk
            for several in settings.values()
            for probe in several
            for image in (*_images(probe), *probe.evidence)
        ),
    ]


def _images(probe: Probe) -> list[ImageRef]:
    return [part for message in probe.messages for part in message.parts if isinstance(part, ImageRef)]


def _unaskable_key(probe: Probe, draw: int) -> str:
    """The key of a probe whose image is broken: made of its name, so that tables can refer to it."""
    return key_of(f"unaskable {probe.sample} {probe.variant} {draw}".encode())
