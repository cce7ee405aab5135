"""Metadata of image files: inspected once, cached in the store until a file changes."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.engine.caches import image_key
from sightline.engine.store import Store
from sightline.images import BadImage, FoundImage, find_image, inspect_found
from sightline.types import ImageFile, ImageRef


def inspect_images(
    images: Mapping[str, ImageRef],
    store: Store,
    *,
    records: bool,
) -> dict[str, ImageFile | BadImage]:
    """Inspect images: digest, format, size."""
    found: dict[str, FoundImage] = {}
    inspected: dict[str, ImageFile | BadImage] = {}
    for path, image in images.items():
        try:
            found[path] = find_image(image)
        except BadImage as error:
            inspected[path] = error
    keys = {path: image_key(file) for path, file in found.items()}
    cached = store.caches.image_files(keys)
    for path, file in found.items():
        try:
            inspected[path] = inspect_found(file, cached)
        except BadImage as error:
            inspected[path] = error
    if records:
        new = (file for path, file in inspected.items() if file is not cached.get(path))
        store.caches.add_image_files(keys, [file for file in new if isinstance(file, ImageFile)])
    return inspected
