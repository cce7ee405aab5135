"""The probes of an evaluation as the store keeps them, and the groups of their answers."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.released import cluster_of
from sightline.errors import UserError, some_of
from sightline.evaluation.options import EffectiveOptions
from sightline.formats.files import json_digest
from sightline.formats.jsonl import as_asked, image_paths, path_in_data, prompt_text
from sightline.formats.prediction import Prediction
from sightline.images import BadImage, own_transform, sent_size, transform_for
from sightline.models.base import Model
from sightline.plugins import wrong_return
from sightline.scoring.reasoning import tag_notes, without_reasoning
from sightline.store.answers import KeyedRequest, RequestFrame, key_of
from sightline.store.store import Store, inspect_images
from sightline.text import counted
from sightline.types import (
    BETWEEN_PARTS,
    NOT_SENT,
    Answer,
    Failure,
    FirstAnswer,
    Group,
    GroupKey,
    HiddenContent,
    ImageFile,
    ImageRef,
    ImageSize,
    Labels,
    Message,
    Origin,
    Outcome,
    Probe,
    Sample,
    Usage,
    user,
)

if TYPE_CHECKING:
    from sightline.models.ocr import Augmented

SAMPLES_PER_CHUNK = 64
"""The number of samples that are planned together."""

WINDOW = 1024
"""The number of samples, in their order, among which those with the same image become neighbours."""


HIDDEN: Mapping[HiddenContent, str] = {
    "frames": "with several frames or pages, of which every model sees the first",
    "transparency": "with transparent pixels, which every model sees on white",
    "levels": "of more than 8 bits without a level above a quarter of white, which every model sees dark",
}


class PlanInputs(Struct, frozen=True, kw_only=True):
    """Everything that determines the requests of an evaluation.

    `settings` maps the evaluated setting, which comes first, and each other one that a metric reads to its
    options. `repeats` is the number of draws of each probe, `fresh` the tag of --fresh. `augmented` replaces
    images by text, for a model that gets text only. `retries` maps each setting to the sampling options with
    which truncated answers are asked again; it is empty if none is.
    """

    benchmark: Benchmark
    samples: Iterable[Sample]
    settings: Mapping[str, EffectiveOptions]
    model: Model
    repeats: int = 1
    fresh: str = ""
    augmented: Augmented | None = None
    retries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class PlannedProbe(NamedTuple):
    """A probe of the plan: its position in the run, its record for the store, and its request.

    `request` is None where the probe cannot be asked; the record's `error` then says why. `retry` is the
    request that is sent if the answer is truncated; None for none.
    """

    position: int
    probe: StoredProbe
    request: KeyedRequest | None
    retry: KeyedRequest | None = None


Draws = Callable[[int, Origin], KeyedRequest]
"""The request of each draw of a probe."""


class RenderedProbe(NamedTuple):
    """What the draws of a probe share: its record, its requests, and those with a higher token limit.

    Without a request it cannot be asked; the error of the record says why.
    """

    stored: StoredProbe
    request: Draws | None
    retry: Draws | None


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
        self._retry_frames = {
            setting: RequestFrame(inputs.model.identity, sampling, inputs.fresh)
            for setting, sampling in inputs.retries.items()
        }
        self._store = store
        self._read_only = read_only
        self._files: dict[str, ImageFile | BadImage] = {}
        self._hiding: dict[HiddenContent, dict[str, None]] = {}

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

    def retries(self, answers: AnswerLookup) -> Iterator[KeyedRequest]:
        """The second requests of the probes whose answers are truncated, planned anew at each call."""
        for chunk in self.chunks() if self._retry_frames else ():
            results = answers.look_up([planned.probe.key for planned in chunk])
            for planned in chunk:
                result = results.get(planned.probe.key)
                if planned.retry is not None and isinstance(result, Answer) and result.truncated:
                    yield planned.retry

    def probes(self) -> Iterator[StoredProbe]:
        """The probes of all samples, planned anew at each call."""
        for chunk in self.chunks():
            yield from (planned.probe for planned in chunk)

    def hidden_notes(self) -> list[str]:
        """What the images of the probes planned so far hold that no model sees."""
        return [
            f"{counted(len(paths), 'image')} {HIDDEN[hidden]}: {some_of(list(paths), 3)}"
            for hidden, paths in self._hiding.items()
        ]

    def _probes(self, sample: Sample) -> dict[str, list[Probe]]:
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
        rendered: dict[tuple[str, str], RenderedProbe] = {}
        requests: dict[str, KeyedRequest] = {}
        retries: dict[str, KeyedRequest] = {}
        cluster = cluster_of(sample, self._files)
        digest = sample_digest(inputs.benchmark, sample, self._files)

        def store(setting: str, probe: Probe, draw: int) -> StoredProbe:
            origin = Origin(inputs.benchmark.name, setting, probe.sample, probe.variant, draw, probe.options)
            recorded = inputs.model.recorded(origin)
            one = rendered.get((setting, probe.variant)) if recorded is None else None
            if one is None:
                one = self._render(as_asked(probe, recorded), origin, cluster, digest, recorded)
            if recorded is None:
                rendered[setting, probe.variant] = one
            if one.request is None:
                return replace(one.stored, draw=draw, key=_unaskable_key(probe, draw))
            keyed = one.request(draw, origin)
            key = keyed.request.key
            requests[key] = keyed
            if one.retry is None:
                return replace(one.stored, draw=draw, key=key)
            again = retries[key] = one.retry(draw, origin)
            return replace(one.stored, draw=draw, key=key, retry=StoredRetry(again.request.key))

        for number, stored in enumerate(stored_groups(probes, range(inputs.repeats), store)):
            position, key = probe_position(index, number), stored.key
            yield PlannedProbe(position, stored, requests.get(key), retries.get(key))

    def _render(
        self, probe: Probe, origin: Origin, cluster: str, digest: str, recorded: Prediction | None
    ) -> RenderedProbe:
        """What all draws of a probe share; those that a file recorded may have been asked differently."""
        content = self._content(probe, origin)
        if isinstance(content, BadImage):
            unsent = replace(probe, messages=())
            return RenderedProbe(stored_probe(unsent, 0, "", cluster, digest, error=str(content)), None, None)
        messages, images = content
        if not self._inputs.model.capabilities.replays and messages is not probe.messages:
            probe = replace(probe, messages=messages)
        evidence = judge_images(probe, self._files)
        frame, again = self._frames[origin.setting], self._retry_frames.get(origin.setting)
        return RenderedProbe(
            stored_probe(probe, 0, "", cluster, digest, evidence=evidence, files=images, recorded=recorded),
            frame.draws(messages, images, probe.choices),
            None if again is None else again.draws(messages, images, probe.choices),
        )

    def _content(
        self, probe: Probe, origin: Origin
    ) -> tuple[tuple[Message, ...], Mapping[str, ImageFile]] | BadImage:
        if self._inputs.model.capabilities.replays:
            return (user(*(origin.benchmark, origin.setting, origin.sample, origin.variant)),), {}
        images: dict[str, ImageFile] = {}
        for image in _images(probe):
            file = self._files[image.path]
            if isinstance(file, BadImage):
                return file
            images[image.path] = file
            for hidden in file.hidden:
                self._hiding.setdefault(hidden, {})[path_in_data(image)] = None
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


# -- The samples of an evaluation: few are held, many are read again at each pass

HELD = 4096
"""The number of samples that are held at most, where the benchmark itself does not hold them all."""

_encode_sample = msgspec.json.Encoder(order="deterministic").encode

Read = Callable[[], Iterable[Sample]]
"""Starts a pass over all samples of a split."""


class SampleSelection(Struct, frozen=True):
    """The samples that are taken: all, the first `limit` ones, with `shuffle` random ones, or some by id.

    Each text of `ids` is an id, or several with commas between them.
    """

    limit: int | None = None
    shuffle: bool = False
    seed: int = 0
    ids: tuple[str, ...] = ()

    def has(self, position: int) -> bool:
        """Whether the sample at a position is known to be selected before all samples were counted."""
        return not self.shuffle and (self.limit is None or position < self.limit)

    @property
    def names(self) -> frozenset[str]:
        """What may be an id in `ids`: an id may hold a comma."""
        return frozenset(self.ids).union(*(text.split(",") for text in self.ids))

    def positions(self, total: int) -> Sequence[int]:
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
        self.total = 0
        """The number of samples that the last complete pass read, selected or not."""

    def unselected(self) -> Iterable[Sample]:
        """Read all samples again, selected or not."""
        return self._read()

    def read_all(self, visit: Callable[[Sample], None] = lambda sample: None) -> Sequence[int]:
        """Read all samples once, and check that no two have the same id: they would merge into one group."""
        benchmark, selection = self._benchmark, self._selection
        found = self._read()
        held: list[Sample] | None = []
        may_change = not isinstance(found, Sequence)
        hashes, contents, named = array("q"), array("q"), dict[str, int]()
        names = selection.names
        for sample in found:
            if not isinstance(sample, Sample):
                raise wrong_return(benchmark.samples, sample, Sample)
            if sample.id in names:
                named[sample.id] = len(hashes)
            if sample.id in names if names else selection.has(len(hashes)):
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
        self._refuse_absent(named)
        positions = array("q", named.values()) if names else selection.positions(len(hashes))
        self._positions = positions
        self.total = len(hashes)
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

    def _refuse_absent(self, named: Container[str]) -> None:
        texts = [text for text in self._selection.ids if text not in named]
        if absent := [name for text in texts for name in text.split(",") if name not in named]:
            raise UserError(
                f"{self._benchmark.name} has no such sample",
                field="--ids",
                found=some_of(absent, 4),
                expected="ids of its data, which answers.jsonl has as `sample`",
            )

    def _refuse_repeated(self, hashes: set[int]) -> None:
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
    return hash(_encode_sample(sample))


# -- The digest of a sample: `compare` pairs two runs only on samples with equal data


def sample_digest(
    benchmark: Benchmark, sample: Sample, files: Mapping[str, ImageFile | BadImage] | None = None
) -> str:
    """Digest a sample: its texts, a hyphen, and the contents of its images, if all can be read.

    The order of its parts in the file does not matter.
    """
    sample = benchmark.in_order(sample)
    texts = _digest([sample.id, benchmark.sample_content(sample)])
    if not sample.images:
        return texts
    images = [(files or {}).get(image.path) for image in sample.images]
    contents = [file.digest for file in images if isinstance(file, ImageFile)]
    return texts + BETWEEN_PARTS + images_digest(contents) if len(contents) == len(images) else texts


def images_digest(contents: Sequence[str]) -> str:
    """The second part of the digest of a sample: of the SHA-256 of its images, in their order."""
    return _digest(contents)


def with_images_of(digest: str, recorded: str) -> str:
    """Complete a digest without images by the recorded one, '' if there is none."""
    return digest if BETWEEN_PARTS in digest else digest + "".join(recorded.partition(BETWEEN_PARTS)[1:])


def _digest(content: Any) -> str:
    return json_digest(content)[:16]


# -- The record of a probe that the store keeps for each run, and its position in the run

_NUMBER_BITS = 20


class StoredRetry(Struct, frozen=True):
    """The key of the second request of a probe, which is sent if the first answer is truncated."""

    key: str


class StoredProbe(Struct, frozen=True, omit_defaults=True):
    """A probe as a run stores it: what judging and counting need, without the answer.

    `key` is the answer's key in the store. The first probe of a group holds the group's `partners`: for each
    other setting that a metric reads, the stored probes of that setting for the same sample. `error` says why
    the probe cannot be asked; the store then has no answer under `key`. If `pooled`, all draws of the probe
    form one group. `evidence` lists the images that a judge of the answer sees, without the limits of the
    model. `context`, `images`, `image_sizes` and `prompt` are those of the answer's line in answers.jsonl,
    empty in partners. `sample_digest` is that of the sample, the same in every setting; '' if it is unknown.
    `retry` is set in runs with --retry-truncated. `answer` or `failure` is what a file of answers holds: it
    belongs to the run that scored the file, and is never used for another one.
    """

    sample: str
    variant: str
    draw: int
    key: str
    cluster: str
    question: str
    labels: Labels = field(default_factory=dict)
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    partners: Mapping[str, tuple[StoredProbe, ...]] = field(default_factory=dict)
    error: str | None = None
    pooled: bool = False
    evidence: tuple[ImageFile, ...] = ()
    context: str = ""
    images: tuple[str, ...] = ()
    image_sizes: tuple[ImageSize | None, ...] = ()
    prompt: str = ""
    sample_digest: str = ""
    retry: StoredRetry | None = None
    answer: Answer | None = None
    failure: Failure | None = None

    @property
    def is_asked(self) -> bool:
        """Whether the answer is one of the store."""
        return self.error is None and self.answer is None and self.failure is None


def stored_probe(
    probe: Probe,
    draw: int,
    key: str,
    cluster: str,
    sample_digest: str = "",
    *,
    error: str | None = None,
    evidence: tuple[ImageFile, ...] = (),
    files: Mapping[str, ImageFile] | None = None,
    recorded: Prediction | None = None,
) -> StoredProbe:
    """The stored record of one draw of a probe.

    `error` says why it cannot be asked. `files` are the images that are sent, None if that is not known.
    `recorded` is the answer in a file, which may hold the sizes of its images.
    """
    sizes = recorded.image_sizes if recorded is not None else ()
    return StoredProbe(
        sample=probe.sample,
        variant=probe.variant,
        draw=draw,
        key=key,
        cluster=cluster,
        question=probe.question,
        labels=probe.labels,
        references=probe.references,
        options=probe.options,
        error=error,
        pooled=probe.draws > 0,
        evidence=evidence,
        context=probe.context,
        images=image_paths(probe.messages),
        image_sizes=tuple(sent_size(files[image.path]) for image in _images(probe)) if files else sizes,
        prompt=prompt_text(probe.messages),
        sample_digest=sample_digest,
    )


def judge_images(probe: Probe, files: Mapping[str, ImageFile | BadImage]) -> tuple[ImageFile, ...]:
    if not probe.evidence:
        return ()
    images = (files.get(image.path) for image in probe.evidence)
    return tuple(
        replace(file, transform=own_transform(file)) for file in images if isinstance(file, ImageFile)
    )


def stored_groups(
    probes: Mapping[str, Sequence[Probe]],
    draws: Sequence[int],
    store: Callable[[str, Probe, int], StoredProbe],
) -> Iterator[StoredProbe]:
    """The stored probes of one sample, group by group; the first of each group holds the partners."""
    own, *partners = probes
    for members in grouped(probes[own], draws):
        first, *rest = (store(own, probe, draw) for probe, draw in members)
        linked = {
            # Metrics read the answers of partners, and nobody reads what they were asked.
            setting: tuple(
                replace(store(setting, probe, draw), context="", images=(), prompt="", sample_digest="")
                for probe, draw in partner_draws(probes[setting], first.draw)
            )
            for setting in partners
        }
        yield replace(first, partners=linked) if linked else first
        yield from rest


def grouped(probes: Sequence[Probe], draws: Sequence[int]) -> list[list[tuple[Probe, int]]]:
    """The groups of a sample: one per draw, or, where draws are pooled, one per probe."""
    if any(probe.draws for probe in probes):
        return [[(probe, draw) for draw in draws] for probe in probes]
    return [[(probe, draw) for probe in probes] for draw in draws]


def partner_draws(probes: Iterable[Probe], draw: int) -> Iterator[tuple[Probe, int]]:
    """The draws of a partner setting that a group is compared with."""
    for probe in probes:
        yield from ((probe, number) for number in (range(probe.draws) if probe.draws else (draw,)))


def read_stored_probes(
    store: Store, run: int, without: Callable[[int], bool] | None = None
) -> Iterator[StoredProbe]:
    """The probes of a run, in the order of its samples; `without` leaves out samples by index."""
    decoder = msgspec.json.Decoder(StoredProbe)
    for position, body in store.runs.numbered_probes(run):
        if without is None or not without(sample_index(position)):
            yield decoder.decode(body)


def probe_position(sample: int, number: int) -> int:
    """The position of a probe in its run; `sample` is an index from 0."""
    return (sample << _NUMBER_BITS) + number


def sample_index(position: int) -> int:
    return position >> _NUMBER_BITS


# -- Groups of answered probes, built from stored probes and a lookup of answers; nothing is judged yet

PROBES_PER_LOOKUP = 256
"""The number of probes whose answers are fetched together."""


class AnswerLookup(Protocol):
    """A source of answers by key: the store, or a file that was read."""

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """Absent keys are left out."""


class CollectedAnswers(Struct, frozen=True, kw_only=True):
    """The probes of an evaluation and the source of their answers.

    `probes` starts a new pass over the stored probes at each call, in the order of the samples.
    `reasoning_tags` are further tags around reasoning, which is cut from the responses. `retries` says
    whether truncated answers are asked again; then the second answer counts, or with `first` the truncated
    one.
    """

    probes: Callable[[], Iterable[StoredProbe]]
    answers: AnswerLookup
    reasoning_tags: tuple[str, ...] = ()
    retries: bool = False
    first: bool = False

    def groups(self) -> Iterator[Group]:
        """The groups of the evaluation, in the order of the samples; each call starts a new pass."""
        return answered_groups(self.probes(), self.answers, self.reasoning_tags, first=self.first)

    def tag_notes(self) -> list[str]:
        """Notes on further tags that no response holds, in a pass of its own."""
        if not self.reasoning_tags:
            return []
        found = (probe_results(chunk, self.answers).values() for chunk in _whole_samples(self.probes()))
        answers = (one for results in found for one in results if isinstance(one, Answer))
        return tag_notes(self.reasoning_tags, (text for one in answers for text in (one.text, one.reasoning)))

    def groups_to_judge(self) -> Iterator[Group]:
        """The groups, and those with first answers that second ones have replaced as they were before."""
        yield from self.groups()
        if self.retries:
            yield from replace(self, first=True).groups()


def answered_groups(
    probes: Iterable[StoredProbe],
    answers: AnswerLookup,
    tags: Sequence[str] = (),
    *,
    first: bool = False,
) -> Iterator[Group]:
    """The groups of probes; see `CollectedAnswers` for `tags` and `first`."""
    for chunk in _whole_samples(probes):
        results = probe_results(chunk, answers)
        for _, members in groupby(chunk, key=_group_key):
            yield _group(list(members), results, tags, first=first)


def probe_results(chunk: Sequence[StoredProbe], answers: AnswerLookup) -> dict[str, Answer | Failure]:
    """The answers to probes, to those of their partners, and the second ones to truncated answers."""
    partners = [probe for first in chunk for others in first.partners.values() for probe in others]
    probes = (*chunk, *partners)
    keys = [probe.key for probe in probes if probe.is_asked]
    keys += [probe.retry.key for probe in probes if probe.retry is not None]
    recorded = {probe.key: found for probe in probes if (found := probe.answer or probe.failure)}
    return {**answers.look_up(list(dict.fromkeys(keys))), **recorded}


def _group_key(probe: StoredProbe) -> GroupKey:
    return (probe.sample, 0, probe.variant) if probe.pooled else (probe.sample, probe.draw, "")


def _group(
    probes: Sequence[StoredProbe],
    results: Mapping[str, Answer | Failure],
    tags: Sequence[str],
    *,
    first: bool,
) -> Group:
    def outcome(probe: StoredProbe) -> Outcome:
        found = _outcome(probe, results.get(probe.key), tags)
        second = results.get(probe.retry.key) if probe.retry is not None else None
        if first or not found.truncated or probe.retry is None or not isinstance(second, Answer):
            return found
        replaced = FirstAnswer(
            key=found.key,
            response=found.response,
            finish_reason=found.finish_reason,
            reasoning=found.reasoning,
        )
        return replace(_outcome(probe, second, tags), key=probe.retry.key, first=replaced)

    leading = probes[0]
    sample, draw, pooled = _group_key(leading)
    partners = {
        setting: tuple(map(outcome, others))
        for setting, others in leading.partners.items()
        if others and all(probe.key in results for probe in others)
    }
    outcomes = tuple(map(outcome, probes))
    evidence = {
        one.key: probe.evidence for one, probe in zip(outcomes, probes, strict=True) if probe.evidence
    }
    return Group(sample, draw, leading.cluster, outcomes, partners=partners, evidence=evidence, pooled=pooled)


def _outcome(probe: StoredProbe, result: Answer | Failure | None, tags: Sequence[str]) -> Outcome:
    """A probe with its answer, before it is judged.

    An empty answer is wrong, a failed call is an error. A probe that has neither an answer nor a failure was
    not sent, unless it could not be.
    """
    shared: dict[str, Any] = {
        "sample": probe.sample,
        "variant": probe.variant,
        "draw": probe.draw,
        "key": probe.key,
        "labels": probe.labels,
        "references": probe.references,
        "question": probe.question,
        "options": probe.options,
        "context": probe.context,
        "images": probe.images,
        "image_sizes": probe.image_sizes,
        "prompt": probe.prompt,
        "cluster": probe.cluster,
        "sample_digest": probe.sample_digest,
    }
    if not isinstance(result, Answer):
        error = result.message if isinstance(result, Failure) else probe.error or NOT_SENT
        return Outcome(
            **shared,
            response="",
            status="not_sent" if error == NOT_SENT else "error",
            finish_reason="",
            usage=Usage(),
            verdict="unscored" if error == NOT_SENT else "error",
            error=error,
        )
    result = without_reasoning(result, tags)
    empty = not result.text
    return Outcome(
        **shared,
        response=result.text,
        reasoning=result.reasoning,
        status="empty" if empty else "ok",
        finish_reason=result.finish_reason,
        usage=result.usage,
        verdict="wrong" if empty and probe.references else "unscored",
        version=result.version,
        latency=round(result.latency, 4),
    )


def _whole_samples(probes: Iterable[StoredProbe]) -> Iterator[list[StoredProbe]]:
    """Probes in chunks that never split a sample."""
    chunk: list[StoredProbe] = []
    for probe in probes:
        if len(chunk) >= PROBES_PER_LOOKUP and probe.sample != chunk[-1].sample:
            yield chunk
            chunk = []
        chunk.append(probe)
    if chunk:
        yield chunk
