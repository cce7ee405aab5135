"""Near-duplicates among the images of a data set, searched in the background."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sightline.builders.execution import Execution
from sightline.builders.near_duplicates import find_duplicates, image_hashes, import_imagehash
from sightline.engine.store import Store
from sightline.images import BadImage, inspect_image
from sightline.types import ImageFile
from sightline.web.data_set import DataSet

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
        """Say how far the search in a data set is.

        Returns:
            The state; None before a search.
        """
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
            found = image_hashes(files, self._store, Execution())
            hashes |= {digest: hashed for digest, hashed in found.items() if isinstance(hashed, bytes)}
            self._states[path] = DuplicateState(done=batch[-1] + 1, total=total)
        pairs = [
            (places[digest], places[near.of], near.distance)
            for digest, near in find_duplicates(hashes).items()
        ]
        return DuplicateState(total, total, sorted(pairs, key=lambda pair: pair[2]), unreadable, is_done=True)


def _batches(total: int) -> list[range]:
    return [range(start, min(start + BATCH, total)) for start in range(0, total, BATCH)]
