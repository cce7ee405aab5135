"""Looks through a data folder: every record read, every image decoded, everything counted."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.records import data_folder
from sightline.benchmarks.release import Release, ReleasedRecords, UserRecords
from sightline.data.pull import load
from sightline.errors import unknown_name
from sightline.images import BadImage, decode, inspect_image
from sightline.progress import progress
from sightline.types import ImageRef, Sample

THREADS = min(8, os.cpu_count() or 1)


class Fault(Struct, frozen=True):
    """An image that cannot be used, the samples that show it, and what is wrong with it."""

    image: str
    samples: tuple[str, ...]
    problem: str


class SplitCheck(Struct, frozen=True):
    """What a split holds.

    `released`: the file of records is the pinned release, byte for byte. `images` counts files, `clusters`
    images that differ in content; `cluster_sizes` maps a number of samples to the clusters that have so
    many, `labels` a label and its value to the samples that carry it. `same` lists files of equal content.
    `as_published`: samples and clusters are as many as the paper's. What is held against the release is None
    of a split that is no part of it.
    """

    split: str
    file: str
    released: bool | None
    samples: int
    images: int
    clusters: int
    published_samples: int | None
    published_clusters: int | None
    as_published: bool | None
    cluster_sizes: dict[int, int]
    labels: dict[str, dict[str, int]]
    same: list[list[str]]
    missing: list[Fault]
    broken: list[Fault]


class Check(Struct, frozen=True):
    """What a data folder holds: paths are relative to `folder`; `unreferenced` files no record names."""

    benchmark: str
    folder: str
    splits: list[SplitCheck]
    unreferenced: list[str]

    @property
    def sound(self) -> bool:
        """Whether every image is there and can be decoded."""
        return not any(split.missing or split.broken for split in self.splits)


class _Seen(Struct, frozen=True):
    """What became of an image: whether it is there, the digest of a readable one, what is wrong with it."""

    there: bool
    digest: str
    problem: str = ""


def check(
    source: Release, folder: Path | None, split: str | None = None, *, show_progress: bool = False
) -> Check:
    """Look through the splits that a data folder holds, or through one of them.

    Unreferenced files are looked for where the images of these splits lie. Raises UserError where there
    are no records, or one is wrong.
    """
    found = records_of(source, folder, split)
    place = data_folder(folder, source.name, found[0].name)
    samples = {records.split: load(source, place, records.split) for records in found}
    images = {image.path: image for each in samples.values() for one in each for image in one.images}
    seen = _look_at_all(images, show_progress)
    return Check(
        benchmark=source.name,
        folder=str(place),
        splits=[_check_split(records, place, samples[records.split], seen) for records in found],
        unreferenced=_unreferenced(place, images),
    )


def records_of(
    source: Release, folder: Path | None, split: str | None
) -> list[ReleasedRecords | UserRecords]:
    """The records to look through: those of the split, else of every split that is there.

    Raises UserError for a split that the data set does not have.
    """
    if split is not None:
        named = [records for records in source.splits if records.split == split]
        if not named:
            raise unknown_name(f"split of {source.name}", split, (records.split for records in source.splits))
        return named
    places = (folder, folder / source.name) if folder else ()
    there = [r for r in source.splits if any((place / r.name).is_file() for place in places)]
    return there or list(source.splits[:1])


def _look_at_all(images: Mapping[str, ImageRef], show_progress: bool) -> dict[str, _Seen]:
    seen = {}
    with (
        warnings.catch_warnings(),
        progress("images", len(images), "images", show_progress=show_progress) as advance,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        # Pillow warns of images that are large and still within our limits.
        warnings.simplefilter("ignore")
        for path, one in zip(images, pool.map(_look_at, images.values()), strict=True):
            seen[path] = one
            advance(1)
    return seen


def _look_at(image: ImageRef) -> _Seen:
    there, digest = os.path.exists(image.path), ""
    try:
        file = inspect_image(image, {})
        digest = file.digest
        decode(file)
    except BadImage as error:
        return _Seen(there, digest, str(error).removeprefix(f"{image.path}: "))
    return _Seen(there, digest)


def _check_split(
    records: ReleasedRecords | UserRecords, place: Path, samples: Sequence[Sample], seen: Mapping[str, _Seen]
) -> SplitCheck:
    needed = defaultdict(list)
    for sample in samples:
        for image in sample.images:
            needed[image.path].append(sample.id)
    faults = {
        path: Fault(os.path.relpath(path, place), tuple(ids), seen[path].problem)
        for path, ids in needed.items()
        if seen[path].problem
    }
    clusters = Counter(seen[one.images[0].path].digest or one.images[0].path for one in samples)
    release = records if isinstance(records, ReleasedRecords) else None
    counts = (release.samples, release.images) if release else (None, None)
    return SplitCheck(
        split=records.split,
        file=records.name,
        released=hashlib.sha256((place / release.name).read_bytes()).hexdigest() == release.sha256
        if release
        else None,
        samples=len(samples),
        images=len(needed),
        clusters=len(clusters),
        published_samples=counts[0],
        published_clusters=counts[1],
        as_published=(len(samples), len(clusters)) == counts if release else None,
        cluster_sizes=dict(sorted(Counter(clusters.values()).items())),
        labels=_labels(samples),
        same=_same({os.path.relpath(path, place): seen[path].digest for path in needed}),
        missing=[fault for path, fault in faults.items() if not seen[path].there],
        broken=[fault for path, fault in faults.items() if seen[path].there],
    )


def _labels(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    """How many samples carry each value of each label; one with several values counts under each."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        for label, value in sample.labels.items():
            counts[label].update((value,) if isinstance(value, str) else dict.fromkeys(value).keys())
    return {label: dict(values.most_common()) for label, values in counts.items()}


def _same(digests: Mapping[str, str]) -> list[list[str]]:
    """The files whose content another one has too."""
    files = defaultdict(list)
    for path, digest in digests.items():
        if digest:
            files[digest].append(path)
    return [paths for paths in files.values() if len(paths) > 1]


def _unreferenced(place: Path, images: Mapping[str, ImageRef]) -> list[str]:
    """The files beside the images that are none of them."""
    named = {os.path.normpath(path) for path in images}
    folders = {os.path.dirname(path) for path in named}
    inside = sorted(folder for folder in folders if Path(folder).is_dir() and place in Path(folder).parents)
    files = [os.path.join(folder, name) for folder in inside for name in sorted(os.listdir(folder))]
    return [os.path.relpath(path, place) for path in files if path not in named and os.path.isfile(path)]
