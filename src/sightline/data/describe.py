"""What a data set is made of: how many samples and images carry which label, how long its texts are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import Struct

from sightline.benchmarks.records import data_folder
from sightline.benchmarks.release import Release
from sightline.clusters import cluster_of, inspect_sample
from sightline.data.check import records_of
from sightline.data.instruction_verbs import VerbCounts, count_verbs
from sightline.data.pull import load
from sightline.progress import progress
from sightline.registry import benchmark as find_benchmark
from sightline.types import Sample


class Share(Struct, frozen=True):
    """How many samples, and how many different images, carry a value of a label. `percent` are the images
    of all that carry any value of it, those with several values counted under each."""

    samples: int
    images: int
    percent: float


class Length(Struct, frozen=True):
    """How many texts of a kind there are, and how long they are on average, in words and in characters.

    Words are what white space parts.
    """

    texts: int
    words: float
    characters: float


class Description(Struct, frozen=True):
    """What the splits of a data set are made of together; what stands in two of them counts once.

    `splits` holds the samples of each, `images` the different images, `by_name` how many of those could
    not be read and count by their names, `labels` a label's values, `lengths` what kind of text is how long.
    """

    benchmark: str
    folder: str
    splits: dict[str, int]
    samples: int
    images: int
    by_name: int
    labels: dict[str, dict[str, Share]]
    lengths: dict[str, Length]
    verbs: VerbCounts | None


def describe(
    source: Release, folder: Path | None, split: str | None = None, *, show_progress: bool = False
) -> Description:
    """Count the splits that a data folder holds, or one of them (II-Bench, Table 1; ConTextual, Table 2).

    Raises UserError where there are no records, or one is wrong.
    """
    found = records_of(source, folder, split)
    place = data_folder(folder, source.name, found[0].name)
    by_split = {records.split: load(source, place, records.split) for records in found}
    samples = _together(by_split.values())
    images = _images(samples, show_progress)
    texts = _texts(samples)
    benchmark = find_benchmark(source.name)
    for name in by_split:
        for kind, more in benchmark.extra_texts(place, name).items():
            texts.setdefault(kind, []).extend(more)
    return Description(
        benchmark=source.name,
        folder=str(place),
        splits={name: len(each) for name, each in by_split.items()},
        samples=len(samples),
        images=len(set(images)),
        by_name=sum(image.startswith("file ") for image in set(images)),
        labels=_labels(samples, images),
        lengths={kind: _length(some) for kind, some in texts.items() if some},
        verbs=count_verbs(texts["question"]) if benchmark.has_commands else None,
    )


def _together(splits: Iterable[Sequence[Sample]]) -> list[Sample]:
    """The samples of all splits, those with the same question about the same image once, with the answer
    where any of them has it (ConTextual's val stands in its test)."""
    found: dict[object, Sample] = {}
    for samples in splits:
        # Within one split two samples are two, whatever they ask.
        times: Counter[object] = Counter()
        for sample in samples:
            asked = (tuple(image.path for image in sample.images), sample.question)
            times[asked] += 1
            known = found.get((asked, times[asked]))
            if known is None or not known.references:
                found[asked, times[asked]] = sample
    return list(found.values())


def _images(samples: Sequence[Sample], show_progress: bool) -> list[str]:
    """What tells the image of each sample from all others: its content, else its name."""
    names = []
    with progress("images", len(samples), "images", show_progress=show_progress) as advance:
        for sample in samples:
            names.append(cluster_of(sample, inspect_sample(sample)))
            advance(1)
    return names


def _labels(samples: Sequence[Sample], images: Sequence[str]) -> dict[str, dict[str, Share]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    carriers: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for sample, image in zip(samples, images, strict=True):
        for label, value in sample.labels.items():
            for one in dict.fromkeys((value,) if isinstance(value, str) else value):
                counts[label][one] += 1
                carriers[label][one].add(image)
    return {label: _shares(counts[label], carriers[label]) for label in counts}


def _shares(counts: Counter[str], carriers: Mapping[str, set[str]]) -> dict[str, Share]:
    every = sum(map(len, carriers.values()))
    return {
        value: Share(times, len(carriers[value]), 100 * len(carriers[value]) / every)
        for value, times in counts.most_common()
    }


def _texts(samples: Sequence[Sample]) -> dict[str, list[str]]:
    # Where options are offered, a reference is the letter of one.
    written = [sample for sample in samples if not sample.options]
    return {
        "question": [sample.question for sample in samples],
        "option": [option for sample in samples for option in sample.options],
        "reference": [reference for sample in written for reference in sample.references],
    }


def _length(texts: Sequence[str]) -> Length:
    return Length(len(texts), fmean(len(text.split()) for text in texts), fmean(map(len, texts)))
