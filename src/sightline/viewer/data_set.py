"""A data folder or a groups file, read by the benchmark whose format it has, and its near-duplicates."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.base import Benchmark, defaults
from sightline.benchmarks.registry import benchmark, benchmark_names
from sightline.builders.near_duplicates import find_duplicates, image_hashes, import_imagehash
from sightline.errors import UserError
from sightline.formats.groups import GroupLine, read_groups
from sightline.images import BadImage, inspect_image
from sightline.store.store import Store
from sightline.types import ImageFile, ImageRef, Sample

KEPT = 4
"""The data sets that stay in memory."""


class DataItem(Struct, frozen=True):
    """An item of a data set: a sample, or a line of a groups file."""

    id: str
    question: str
    references: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    images: tuple[ImageRef, ...]


class DataSet(Struct, frozen=True, dict=True):
    """A data set."""

    path: str
    kind: str
    items: Sequence[DataItem]

    @cached_property
    def label_counts(self) -> dict[str, list[tuple[str, int]]]:
        """The number of items of each label: name -> values with their numbers, the most frequent first."""
        counts: dict[str, Counter[str]] = {}
        for item in self.items:
            for name, values in item.labels.items():
                counts.setdefault(name, Counter()).update(values)
        return {name: counter.most_common() for name, counter in counts.items()}

    @cached_property
    def texts(self) -> list[str]:
        """What a search looks at, of each item: id, question and references, without case."""
        return ["\n".join((item.id, item.question, *item.references)).casefold() for item in self.items]

    def selected(self, labels: Sequence[tuple[str, str]], search: str) -> Sequence[int]:
        if not labels and not search:
            return range(len(self.items))
        sought = search.casefold()
        return [
            place
            for place, (item, text) in enumerate(zip(self.items, self.texts, strict=True))
            if sought in text and all(value in item.labels.get(name, ()) for name, value in labels)
        ]


def read_data_set(path: Path) -> DataSet:
    """Read a data folder or groups file; one that did not change is not read again."""
    return _read(str(path), _stamp(path))


def _stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """The names, sizes and times of the files of records."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stats = [(file.name, os.stat(file)) for file in files if file.is_file()]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


@lru_cache(maxsize=KEPT)
def _read(path: str, stamp: object) -> DataSet:
    folder = Path(path)
    if folder.is_file():
        return DataSet(path, "groups file", [_line_item(line, folder) for line in read_groups(folder)])
    if (folder / "groups.jsonl").is_file():
        lines = read_groups(folder / "groups.jsonl")
        return DataSet(path, "groups file", [_line_item(line, folder / "groups.jsonl") for line in lines])
    problems = []
    for name in benchmark_names():
        found = benchmark(name)
        for split in found.splits:
            try:
                items = [_sample_item(sample) for sample in _samples(found, folder, split)]
            except UserError as error:
                problems.append(f"{name}: {error}")
                continue
            return DataSet(path, f"{name}, {split}", items)
    raise UserError(
        "no benchmark can read this folder",
        file=path,
        quoted=problems,
        expected="a data folder or groups file",
    )


def _samples(found: Benchmark, folder: Path, split: str) -> Iterator[Sample]:
    setting = next(iter(found.settings.values()))
    yield from found.samples(folder, split, {**defaults(found, setting), "seed": 0})


def _sample_item(sample: Sample) -> DataItem:
    labels = {name: (value,) if isinstance(value, str) else value for name, value in sample.labels.items()}
    return DataItem(sample.id, sample.question, sample.references, labels, sample.images)


def _line_item(line: GroupLine, file: Path) -> DataItem:
    root = str(file.parent)
    labels = {name: (value,) if isinstance(value, str) else value for name, value in line.labels.items()}
    images = tuple(ImageRef(os.path.join(root, image), root) for image in line.images)
    return DataItem(
        f"{line.group}, {line.variant}",
        line.question or line.prompt,
        line.references,
        {**labels, "variant": (line.variant,)},
        images,
    )


# -- Near-duplicates among the images of a data set, searched in the background

BATCH = 32


class DuplicateState(Struct, frozen=True):
    """How far a search is."""

    done: int = 0
    total: int = 0
    pairs: Sequence[tuple[int, int, int]] = ()
    unreadable: int = 0
    error: str = ""
    is_done: bool = False


class DuplicateSearches:
    """The searches of this server, by data set. The store keeps the hashes of the images."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._states: dict[Path, DuplicateState] = {}
        self._lock = threading.Lock()

    def state(self, path: Path) -> DuplicateState | None:
        """Say how far the search in a data set is; None before a search."""
        return self._states.get(path)

    def start(self, path: Path, data: DataSet) -> None:
        """Search in a data set, unless a search goes on."""
        with self._lock:
            state = self._states.get(path)
            if state is not None and not state.is_done:
                return
            self._states[path] = DuplicateState(total=len(data.items))
        threading.Thread(target=self._search, args=(path, data), name="near-duplicates", daemon=True).start()

    def _search(self, path: Path, data: DataSet) -> None:
        try:
            self._states[path] = self._found(path, data)
        except Exception as error:  # The page shows it.
            self._states[path] = DuplicateState(error=str(error), is_done=True)

    def _found(self, path: Path, data: DataSet) -> DuplicateState:
        import_imagehash()
        hashes: dict[str, bytes] = {}
        places: dict[str, int] = {}
        unreadable, total = 0, len(data.items)
        for batch in _batches(total):
            files: list[ImageFile] = []
            for place in batch:
                for image in data.items[place].images[:1]:
                    try:
                        file = inspect_image(image, {})
                    except BadImage:
                        unreadable += 1
                        continue
                    # Items with the same image file are not near-duplicates of each other.
                    places.setdefault(file.digest, place)
                    files.append(file)
            found = image_hashes(files, self._store)
            hashes |= {digest: hashed for digest, hashed in found.items() if isinstance(hashed, bytes)}
            self._states[path] = DuplicateState(done=batch[-1] + 1, total=total)
        pairs = [
            (places[digest], places[near.of], near.distance)
            for digest, near in find_duplicates(hashes).items()
        ]
        return DuplicateState(total, total, sorted(pairs, key=lambda pair: pair[2]), unreadable, is_done=True)


def _batches(total: int) -> list[range]:
    return [range(start, min(start + BATCH, total)) for start in range(0, total, BATCH)]
