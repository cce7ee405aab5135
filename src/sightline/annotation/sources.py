"""What a maker of items gets, the items of probes, and the images of items."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from sightline.annotation.task import Task
from sightline.annotation.types import Item, ItemImage
from sightline.benchmarks.base import Benchmark, defaults
from sightline.benchmarks.registry import benchmark
from sightline.builders.sources import check_images
from sightline.errors import UserError, unknown_name
from sightline.evaluation.options import setting_of
from sightline.store.store import Store
from sightline.types import ImageRef, Labels, Probe, Sample


class SourceRequest(Struct, frozen=True):
    """The sources of a new project, as the user named them.

    Attributes:
        split: The split of a benchmark; '' for its first one.
        by: The label that is the stratum of an item; '' for none.
        count: How many items are sampled, as whole clusters where items have some; None as the task says.
        images: How many clusters, all items about one image, are sampled instead.
        pairs: How many pairs authors of CODIS write about an image, at most.
    """

    task: Task
    sources: tuple[str, ...]
    store: Store
    data: Path | None = None
    split: str = ""
    options: Mapping[str, Any] = {}
    by: str = ""
    count: int | None = None
    images: int | None = None
    seed: int = 0
    pairs: int = 1

    def folder(self, why: str) -> Path:
        """The data folder; a UserError says `why` it is needed if the user named none."""
        if self.data is None:
            raise UserError(f"a data folder is needed for {why}", expected="--data DIR, or SIGHTLINE_DATA")
        return self.data


class MadeItems(Struct, frozen=True):
    """What a maker made; `sampled` says whether the items are a sample already.

    Attributes:
        benchmark: The benchmark and setting that they are of; '' if unknown.
        options: The effective options of the benchmark that humans answer.
        data: The folder of the images; '' without images.
    """

    items: list[Item]
    benchmark: str = ""
    notes: list[str] = []
    data: str = ""
    sampled: bool = False
    options: Mapping[str, Any] = {}


# -- Items of probes: questions that humans answer, as models do

WITHOUT, WITH, ANSWER = "without", "with", "answer"
"""The phases: without context, with context; and the one phase of questions that have no context."""


class Asked(Struct, frozen=True):
    """A benchmark in a setting, with its samples and their probes."""

    name: str
    source: Benchmark
    effective: Mapping[str, Any]
    probes: Sequence[tuple[Sample, Probe]]


def read_probes(request: SourceRequest) -> Asked:
    if len(request.sources) != 1:
        found = ", ".join(request.sources)
        raise UserError(
            "one benchmark is needed", found=found, expected="such as codis, or groups:FILE.jsonl"
        )
    task = request.sources[0]
    source = benchmark(task.partition(":")[0])
    setting = setting_of(source, task)
    effective = {**defaults(source, setting), "seed": request.seed, **request.options}
    split = request.split or source.splits[0]
    samples = source.samples(request.data, split, effective)
    probes = [(sample, probe) for sample in samples for probe in source.probes(sample, effective)]
    return Asked(f"{source.name}:{setting.name}", source, effective, probes)


def probe_items(request: SourceRequest) -> MadeItems:
    """Make items of probes. Each question with a context is first asked without it (CODIS, section 4.2)."""
    asked = read_probes(request)
    shown = [shown_images(sample, probe) for sample, probe in asked.probes]
    refs = [ref for refs in shown for ref in refs]
    folder = request.data or _root(refs)
    images = None if folder is None else FolderImages(folder)
    if images is not None:
        images.add(ref.path for ref in refs)
    items: list[Item] = []
    for (sample, probe), own in zip(asked.probes, shown, strict=True):
        found = images.found([ref.path for ref in own]) if images else ()
        items.append(_item(request, sample, probe, {"image": found} if found else {}))
    items = [*_without_context(items), *items]
    notes = images.notes() if images else []
    data = str(folder.resolve()) if folder else ""
    return MadeItems(items, asked.name, notes, data, options=asked.effective)


def shown_images(sample: Sample, probe: Probe) -> Sequence[ImageRef]:
    """The images that a human sees: the last turn's; if none is sent, that of the sample."""
    sent = [part for part in probe.messages[-1].parts if isinstance(part, ImageRef)] if probe.messages else []
    return sent or sample.images[:1]


def label_of(labels: Labels, name: str) -> str:
    """The value of a label as text; '' for the name ''."""
    if not name:
        return ""
    if name not in labels:
        raise unknown_name("label", name, labels)
    value = labels[name]
    return value if isinstance(value, str) else ", ".join(value)


def _item(request: SourceRequest, sample: Sample, probe: Probe, images: Mapping[str, Any]) -> Item:
    texts = {"context": (probe.context,) if probe.context else (), "options": probe.options}
    if request.task.produces != "answers":  # who answers must not see them
        texts["reference"] = probe.references
    cluster = sample.cluster or next((one.digest for one in images.get("image", ())), sample.id)
    return Item(
        0,
        texts={"question": (probe.question,), **{name: of for name, of in texts.items() if of}},
        images=images,
        phase=WITH if probe.context else ANSWER,
        cluster=cluster,
        stratum=label_of(probe.labels, request.by),
        group=f"{cluster} {probe.question}" if probe.context else sample.id,
        variant=probe.variant,
        hidden={"sample": sample.id, "references": probe.references},
    )


def _without_context(items: Sequence[Item]) -> Iterator[Item]:
    """Each question about an image once without context, for all probes that ask it."""
    asked: dict[tuple[str, ...], list[Item]] = {}
    for item in items:
        if item.phase == WITH:
            images = tuple(image.digest for image in item.images.get("image", ()))
            asked.setdefault((*images, *item.texts["question"]), []).append(item)
    for same in asked.values():
        first = same[0]
        texts = {name: of for name, of in first.texts.items() if name != "context"}
        yield Item(
            0,
            texts=texts,
            images=first.images,
            phase=WITHOUT,
            cluster=first.cluster,
            stratum=first.stratum,
            group=first.cluster,
            hidden={"probes": tuple(f"{one.hidden['sample']}\t{one.variant}" for one in same)},
        )


def _root(refs: Sequence[ImageRef]) -> Path | None:
    return Path(refs[0].root) if refs and refs[0].root else None


# -- Images of items: their paths in the data folder, and their digests


class FolderImages:
    """Images of one data folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broken: dict[str, str] = {}
        self._known: dict[str, ItemImage] = {}

    def add(self, paths: Iterable[str]) -> None:
        new = {path for path in map(self._relative, paths) if path not in self._known}
        refs = {path: ImageRef(str(self.folder / path), str(self.folder)) for path in sorted(new)}
        checked = check_images(refs)
        self.broken |= checked.broken
        self._known |= {path: ItemImage(path, file.digest) for path, file in checked.files.items()}

    def found(self, paths: Sequence[str]) -> tuple[ItemImage, ...]:
        names = map(self._relative, paths)
        return tuple(self._known[name] for name in names if name in self._known)

    def notes(self) -> list[str]:
        if not self.broken:
            return []
        name, reason = next(iter(self.broken.items()))
        return [f"{len(self.broken):,} images cannot be shown, such as {name}: {reason}"]

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.folder) if os.path.isabs(path) else _without(path, self.folder)


def _without(path: str, folder: Path) -> str:
    """A path relative to the folder: benchmarks name images with the folder in front."""
    inside = os.path.relpath(path, folder)
    return path if inside.startswith("..") else inside
