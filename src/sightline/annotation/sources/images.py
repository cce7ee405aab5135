"""Images of items: their paths in the data folder, and their digests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from sightline.annotation.types import ItemImage
from sightline.builders.checked_images import check_images
from sightline.types import ImageRef


class FolderImages:
    """Images of one data folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broken: dict[str, str] = {}
        self._known: dict[str, ItemImage] = {}

    def add(self, paths: Iterable[str]) -> None:
        """Read images."""
        new = {path for path in map(self._relative, paths) if path not in self._known}
        refs = {path: ImageRef(str(self.folder / path), str(self.folder)) for path in sorted(new)}
        checked = check_images(refs)
        self.broken |= checked.broken
        self._known |= {path: ItemImage(path, file.digest) for path, file in checked.files.items()}

    def found(self, paths: Sequence[str]) -> tuple[ItemImage, ...]:
        names = map(self._relative, paths)
        return tuple(self._known[name] for name in names if name in self._known)

    def notes(self) -> list[str]:
        """Say which images cannot be shown."""
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
