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
from sightline.benchmarks.groups.data import GROUPS
from sightline.benchmarks.registry import benchmark, benchmark_names
from sightline.builders.near_duplicates import find_duplicates, image_hashes, import_imagehash
from sightline.errors import UserError, some_of
from sightline.formats.groups import GroupLine, open_groups
from sightline.images import BadImage, inspect_image
from sightline.store.store import Store
from sightline.types import ImageFile, ImageRef, Labels, each_value

KEPT = 4
"""The data sets that stay in memory."""


class DataProbe(Struct, frozen=True):
    """What sets a probe of a group apart: its context or its question, and its references."""

    name: str
    text: str
    references: tuple[str, ...]


class DataItem(Struct, frozen=True):
    """A group of a data set: what its probes share, and each of several probes."""

    id: str
    question: str
    references: tuple[str, ...]
    options: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    images: tuple[ImageRef, ...]
    probes: tuple[DataProbe, ...] = ()


class DataSet(Struct, frozen=True, dict=True):
    """A data set."""

    path: str
    kind: str
    items: Sequence[DataItem]

    @cached_property
    def label_counts(self) -> dict[str, list[tuple[str, int]]]:
        """The number of groups of each label: name -> values with their numbers, the most frequent first."""
        counts: dict[str, Counter[str]] = {}
        for item in self.items:
            for name, values in item.labels.items():
                counts.setdefault(name, Counter()).update(values)
        return {name: counter.most_common() for name, counter in counts.items()}

    @cached_property
    def texts(self) -> list[str]:
        """What a search looks at, of each group: id, questions, contexts and references, without case."""
        return ["\n".join(_texts(item)).casefold() for item in self.items]

    @cached_property
    def probes(self) -> int:
        return sum(len(item.probes) or 1 for item in self.items)

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
    file = folder if folder.is_file() else folder / GROUPS
    if file.is_file():
        return DataSet(
            path, "groups file", [_line_item(lines, file.parent) for lines in open_groups(file).groups()]
        )
    problems = []
    for name in benchmark_names():
        found = benchmark(name)
        for split in found.splits:
            try:
                items = list(_sample_items(found, folder, split))
            except UserError as error:
                problems.append(f"{name}: {error}")
                continue
            return DataSet(path, f"{name}, {split}", items)
    inside = sorted(str(file.parent) for file in folder.glob(f"*/{GROUPS}"))
    raise UserError(
        "no benchmark can read this folder",
        file=path,
        quoted=problems,
        expected=f"a data folder or groups file{f', such as {some_of(inside, 3)}' if inside else ''}",
    )


def _sample_items(found: Benchmark, folder: Path, split: str) -> Iterator[DataItem]:
    options = {**defaults(found, next(iter(found.settings.values()))), "seed": 0}
    for sample in found.samples(folder, split, options):
        probes = [
            (one.variant, one.context or one.question, one.references, one.labels)
            for one in found.probes(sample, options)
        ]
        labels = [sample.labels, *(labels for *_, labels in probes)]
        yield _item(sample.id, sample.question, sample.options, sample.images, labels, probes)


def _line_item(lines: Sequence[GroupLine], root: Path) -> DataItem:
    images = dict.fromkeys(image for line in lines for image in line.images)
    asked = {line.question or line.prompt for line in lines}
    options = {line.options for line in lines}
    return _item(
        lines[0].group,
        asked.pop() if len(asked) == 1 else "",
        options.pop() if len(options) == 1 else (),
        [ImageRef(os.path.join(root, image), str(root)) for image in images],
        [{**line.labels, "variant": line.variant} for line in lines],
        [(line.variant, line.question or line.prompt, line.references, line.labels) for line in lines],
    )


def _item(
    name: str,
    question: str,
    options: tuple[str, ...],
    images: Sequence[ImageRef],
    labels: Sequence[Labels],
    probes: Sequence[tuple[str, str, tuple[str, ...], Labels]],
) -> DataItem:
    """A group; a text or references that all its probes share are those of the group."""
    values: dict[str, dict[str, None]] = {}
    for label, value in (pair for some in labels for pair in some.items()):
        values.setdefault(label, {}).update(dict.fromkeys(each_value(value)))
    shared = {references for _, _, references, _ in probes}
    references = shared.pop() if len(shared) == 1 else ()
    return DataItem(
        name,
        question,
        references,
        options,
        {label: tuple(found) for label, found in values.items()},
        tuple(images),
        tuple(
            DataProbe(variant, "" if text == question else text, () if of == references else of)
            for variant, text, of, _ in (probes if len(probes) > 1 else ())
        ),
    )


def _texts(item: DataItem) -> Iterator[str]:
    yield from (item.id, item.question, *item.references)
    for probe in item.probes:
        yield from (probe.text, *probe.references)


# -- Near-duplicates among the images of a data set, searched in the background

BATCH = 32

Place = tuple[int, int]
"""A group, and an image of it, both by their positions."""


class DuplicateState(Struct, frozen=True):
    """How far a search is."""

    done: int = 0
    total: int = 0
    pairs: Sequence[tuple[Place, Place, int]] = ()
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
        places: dict[str, Place] = {}
        unreadable, total = 0, len(data.items)
        for batch in _batches(total):
            files: list[ImageFile] = []
            for place in batch:
                for number, image in enumerate(data.items[place].images):
                    try:
                        file = inspect_image(image, {})
                    except BadImage:
                        unreadable += 1
                        continue
                    # Groups with the same image file are not near-duplicates of each other.
                    places.setdefault(file.digest, (place, number))
                    files.append(file)
            found = image_hashes(files, self._store)
            hashes |= {digest: hashed for digest, hashed in found.items() if isinstance(hashed, bytes)}
            self._states[path] = DuplicateState(done=batch[-1] + 1, total=total)
        pairs = [
            (places[digest], places[near.of], near.distance)
            for digest, near in find_duplicates(hashes).items()
            if places[digest][0] != places[near.of][0]  # The images of a group are made from one.
        ]
        return DuplicateState(total, total, sorted(pairs, key=lambda pair: pair[2]), unreadable, is_done=True)


def _batches(total: int) -> list[range]:
    return [range(start, min(start + BATCH, total)) for start in range(0, total, BATCH)]
