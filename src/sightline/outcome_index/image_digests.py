"""The digests of the images of answers: those that requests hold, or those of the files in the data folder.

The request of a replayed answer holds no image, and a results folder has no requests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from sightline.engine.image_cache import inspect_images
from sightline.engine.store import Store
from sightline.types import ImageFile, ImageRef, Outcome

ImageDigests = Callable[[Sequence[Outcome]], Mapping[str, Sequence[str]]]
"""Finds the SHA-256 of each image of some outcomes, by answer key, as far as they are known."""


def image_digests(store: Store, folders: Sequence[Path]) -> ImageDigests:
    """Make the function that finds the digests of images."""

    def find(outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[str]]:
        keys = sorted({outcome.key for outcome in outcomes})
        sent = store.answers.images(keys) if keys else {}
        others = [outcome for outcome in outcomes if not sent.get(outcome.key)]
        files = _files(store, folders, {path for outcome in others for path in outcome.images})
        found = {
            outcome.key: tuple(files[path] for path in outcome.images)
            for outcome in others
            if all(path in files for path in outcome.images)
        }
        return {**sent, **found}

    return find


def _files(store: Store, folders: Iterable[Path], paths: set[str]) -> dict[str, str]:
    """Path -> the digest of its file, in the first folder that has it."""
    found: dict[str, str] = {}
    for folder in folders:
        images = {
            path: ImageRef(os.path.join(folder, path), str(folder)) for path in sorted(paths - found.keys())
        }
        files = inspect_images({image.path: image for image in images.values()}, store, records=True)
        for path, image in images.items():
            if isinstance(file := files[image.path], ImageFile):
                found[path] = file.digest
    return found
