"""Describes a data set: the samples and images of each label, and the length of its texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import Struct

from sightline.benchmarks.records import data_folder
from sightline.benchmarks.release import Release
from sightline.clusters import cluster_of, inspect_sample
from sightline.data.check import find_records
from sightline.data.instruction_verbs import VerbCounts, count_verbs
from sightline.data.pull import load_samples
from sightline.progress import progress
from sightline.registry import benchmark as find_benchmark
from sightline.types import Sample


class LabelShare(Struct, frozen=True):
    """The number of samples and of distinct images with a value of a label.

    `percent` is the share of these images among all images with the label. An image with several values
    counts for each.
    """

    samples: int
    images: int
    percent: float


class TextLength(Struct, frozen=True):
    """The number of texts of a kind, and their mean length in words and in characters.

    Words are separated by white space.
    """

    texts: int
    words: float
    characters: float


class DataDescription(Struct, frozen=True):
    """The content of all splits of a data set together; a sample in two splits counts once.

    `splits` holds the number of samples of each split. `images` counts distinct images. `unreadable_images`
    of them could not be read, so that distinct names count as distinct images. `lengths` maps the kind of
    text to its length.
    """

    benchmark: str
    folder: str
    splits: dict[str, int]
    samples: int
    images: int
    unreadable_images: int
    labels: dict[str, dict[str, LabelShare]]
    lengths: dict[str, TextLength]
    verbs: VerbCounts | None


def describe_data(
    release: Release, folder: Path | None, split: str | None = None, *, show_progress: bool = False
) -> DataDescription:
    """Describe one split or all splits of a data folder (II-Bench, Table 1; ConTextual, Table 2).

    Args:
        folder: The data folder, or None for the default one.
        split: The split, or None for all that are present.
    """
    records_found = find_records(release, folder, split)
    root = data_folder(folder, release.name, records_found[0].name)
    by_split = {records.split: load_samples(release, root, records.split) for records in records_found}
    samples = _merged(by_split.values())
    images = _image_names(samples, show_progress)
    texts = _texts(samples)
    benchmark = find_benchmark(release.name)
    for name in by_split:
        for kind, texts_of_kind in benchmark.extra_texts(root, name).items():
            texts.setdefault(kind, []).extend(texts_of_kind)
    return DataDescription(
        benchmark=release.name,
        folder=str(root),
        splits={name: len(each) for name, each in by_split.items()},
        samples=len(samples),
        images=len(set(images)),
        unreadable_images=sum(image.startswith("file ") for image in set(images)),
        labels=_labels(samples, images),
        lengths={kind: _length(some) for kind, some in texts.items() if some},
        verbs=count_verbs(texts["question"]) if benchmark.has_commands else None,
    )


def _merged(splits: Iterable[Sequence[Sample]]) -> list[Sample]:
    """The samples of all splits, each question about an image once, with the reference if a split has it.

    In ConTextual, val is a part of test.
    """
    merged: dict[object, Sample] = {}
    for samples in splits:
        # Equal samples of one split stay separate.
        repeats: Counter[object] = Counter()
        for sample in samples:
            content = (tuple(image.path for image in sample.images), sample.question)
            repeats[content] += 1
            earlier = merged.get((content, repeats[content]))
            if earlier is None or not earlier.references:
                merged[content, repeats[content]] = sample
    return list(merged.values())


def _image_names(samples: Sequence[Sample], show_progress: bool) -> list[str]:
    """A name for the image of each sample: the digest of its content, or its path if it is unreadable."""
    names = []
    with progress("images", len(samples), "images", show_progress=show_progress) as advance:
        for sample in samples:
            names.append(cluster_of(sample, inspect_sample(sample)))
            advance(1)
    return names


def _labels(samples: Sequence[Sample], images: Sequence[str]) -> dict[str, dict[str, LabelShare]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    carriers: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for sample, image in zip(samples, images, strict=True):
        for label, value in sample.labels.items():
            for item in dict.fromkeys((value,) if isinstance(value, str) else value):
                counts[label][item] += 1
                carriers[label][item].add(image)
    return {label: _shares(counts[label], carriers[label]) for label in counts}


def _shares(counts: Counter[str], carriers: Mapping[str, set[str]]) -> dict[str, LabelShare]:
    total = sum(map(len, carriers.values()))
    return {
        value: LabelShare(count, len(carriers[value]), 100 * len(carriers[value]) / total)
        for value, count in counts.most_common()
    }


def _texts(samples: Sequence[Sample]) -> dict[str, list[str]]:
    # References of multiple-choice questions are letters.
    free_form = [sample for sample in samples if not sample.options]
    return {
        "question": [sample.question for sample in samples],
        "option": [option for sample in samples for option in sample.options],
        "reference": [reference for sample in free_form for reference in sample.references],
    }


def _length(texts: Sequence[str]) -> TextLength:
    return TextLength(len(texts), fmean(len(text.split()) for text in texts), fmean(map(len, texts)))
