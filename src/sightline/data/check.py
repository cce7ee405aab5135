"""Checks a data folder: reads every record, decodes every image, and counts."""

from __future__ import annotations

import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.base import Release, ReleasedRecords, UserRecords
from sightline.benchmarks.released import data_folder
from sightline.data.pull import load_samples
from sightline.errors import unknown_name
from sightline.formats.files import file_digest
from sightline.formats.groups import GroupLine
from sightline.images import BadImage, decode, inspect_image
from sightline.progress import progress
from sightline.types import ImageRef, Sample, each_value

THREADS = min(8, os.cpu_count() or 1)


class ImageFault(Struct, frozen=True):
    """An image that cannot be used, the samples that need it, and the problem."""

    image: str
    samples: tuple[str, ...]
    problem: str


class SplitCheck(Struct, frozen=True):
    """The content of a split.

    `released` is true if the file of records equals the pinned release byte for byte. `images` counts files,
    `clusters` images with distinct content. `cluster_sizes` maps a number of samples to the number of
    clusters with as many. `labels` maps a label and its value to the number of samples. `duplicates` lists
    files with equal content. `as_published` is true if the counts of samples and clusters are the paper's.
    Comparisons with the release are None for a split that is not part of it; of one that is not pinned, only
    the samples are compared. Of a groups file, the samples are its lines, and `group_sizes` maps a number of
    lines to the number of groups with as many.
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
    duplicates: list[list[str]]
    missing: list[ImageFault]
    broken: list[ImageFault]
    without_reference: int
    group_sizes: dict[int, int] | None = None


class DataCheck(Struct, frozen=True):
    """The content of a data folder. Paths are relative to `folder`; no record names `unreferenced` files."""

    benchmark: str
    folder: str
    splits: list[SplitCheck]
    unreferenced: list[str]

    @property
    def sound(self) -> bool:
        """Whether all images are present and can be decoded."""
        return not any(split.missing or split.broken for split in self.splits)


class _ImageState(Struct, frozen=True):
    """Whether an image exists, its digest if it can be read, and the problem if there is one."""

    exists: bool
    digest: str
    problem: str = ""


def check_data(
    release: Release, folder: Path | None, split: str | None = None, *, show_progress: bool = False
) -> DataCheck:
    """Check one split or all splits of a data folder."""
    splits = find_records(release, folder, split)
    root = data_folder(folder, release.name, splits[0].name)
    samples = {records.split: load_samples(release, root, records.split) for records in splits}
    images = {image.path: image for part in samples.values() for sample in part for image in sample.images}
    states = _inspect_all(images, show_progress)
    return DataCheck(
        benchmark=release.name,
        folder=str(root),
        splits=[_check_split(records, root, samples[records.split], states) for records in splits],
        unreferenced=_unreferenced(root, images),
    )


def find_records(
    release: Release, folder: Path | None, split: str | None
) -> list[ReleasedRecords | UserRecords]:
    """Find the files of records in a data folder; the first split of the release if none is present."""
    if split is not None:
        named = [records for records in release.splits if records.split == split]
        if not named:
            raise unknown_name(
                f"split of {release.name}", split, (records.split for records in release.splits)
            )
        return named
    roots = (folder, folder / release.name) if folder else ()
    present = [r for r in release.splits if any((root / r.name).is_file() for root in roots)]
    return present or list(release.splits[:1])


def _inspect_all(images: Mapping[str, ImageRef], show_progress: bool) -> dict[str, _ImageState]:
    states = {}
    with (
        warnings.catch_warnings(),
        progress("images", len(images), "images", show_progress=show_progress) as advance,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        # Pillow warns about images that are large but within our limits.
        warnings.simplefilter("ignore")
        for path, state in zip(images, pool.map(_inspect, images.values()), strict=True):
            states[path] = state
            advance(1)
    return states


def _inspect(image: ImageRef) -> _ImageState:
    exists, digest = os.path.exists(image.path), ""
    try:
        file = inspect_image(image, {})
        digest = file.digest
        decode(file)
    except BadImage as error:
        return _ImageState(exists, digest, str(error).removeprefix(f"{image.path}: "))
    return _ImageState(exists, digest)


def _check_split(
    records: ReleasedRecords | UserRecords,
    root: Path,
    samples: Sequence[Sample],
    states: Mapping[str, _ImageState],
) -> SplitCheck:
    samples_of = defaultdict(list)
    for sample in samples:
        for image in sample.images:
            samples_of[image.path].append(sample.id)
    faults = {
        path: ImageFault(os.path.relpath(path, root), tuple(ids), states[path].problem)
        for path, ids in samples_of.items()
        if states[path].problem
    }
    clusters = Counter(
        name
        for sample in samples
        for name in {states[image.path].digest or image.path for image in sample.images}
    )
    is_grouped = bool(samples) and isinstance(samples[0].record, GroupLine)
    groups = Counter(sample.record.group for sample in samples) if is_grouped else None
    released = records if isinstance(records, ReleasedRecords) else None
    images = released.images if released else None
    counted = (len(samples), images and len(clusters))
    return SplitCheck(
        split=records.split,
        file=records.name,
        released=file_digest(root / released.name) == released.sha256 if released else None,
        samples=len(samples),
        images=len(samples_of),
        clusters=len(clusters),
        published_samples=records.samples,
        published_clusters=images,
        as_published=None if records.samples is None else counted == (records.samples, images),
        cluster_sizes=dict(sorted(Counter(clusters.values()).items())),
        labels=_label_counts(samples),
        duplicates=_duplicates({os.path.relpath(path, root): states[path].digest for path in samples_of}),
        missing=[fault for path, fault in faults.items() if not states[path].exists],
        broken=[fault for path, fault in faults.items() if states[path].exists],
        without_reference=sum(not sample.references for sample in samples),
        group_sizes=dict(sorted(Counter(groups.values()).items())) if groups else None,
    )


def _label_counts(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    """The number of samples of each value of each label; a sample with several values counts for each."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        for label, value in sample.labels.items():
            counts[label].update(dict.fromkeys(each_value(value)).keys())
    return {label: dict(values.most_common()) for label, values in counts.items()}


def _duplicates(digests: Mapping[str, str]) -> list[list[str]]:
    files = defaultdict(list)
    for path, digest in digests.items():
        if digest:
            files[digest].append(path)
    return [paths for paths in files.values() if len(paths) > 1]


def _unreferenced(root: Path, images: Mapping[str, ImageRef]) -> list[str]:
    """The files in the folders of images that no record names."""
    named = {os.path.normpath(path) for path in images}
    folders = {os.path.dirname(path) for path in named}
    inside = sorted(folder for folder in folders if Path(folder).is_dir() and root in Path(folder).parents)
    files = [os.path.join(folder, name) for folder in inside for name in sorted(os.listdir(folder))]
    return [os.path.relpath(path, root) for path in files if path not in named and os.path.isfile(path)]
