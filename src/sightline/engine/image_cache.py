"""Metadata of image files: inspected once, cached in the store until a file changes."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.engine.store import Store
from sightline.images import BadImage, inspect_image
from sightline.types import ImageFile, ImageRef


def inspect_images(
    images: Mapping[str, ImageRef], store: Store, *, records: bool
) -> dict[str, ImageFile | BadImage]:
    """Inspect images: digest, format, size.

    Args:
        images: Path -> image.
        store: The store that caches the metadata.
        records: Whether new metadata is written to the store.

    Returns:
        Path -> metadata, or the error of an image that cannot be used.
    """
    known = store.image_files(list(images))
    found: dict[str, ImageFile | BadImage] = {}
    for path, image in images.items():
        try:
            found[path] = inspect_image(image, known)
        except BadImage as error:
            found[path] = error
    if records:
        new = (file for path, file in found.items() if file is not known.get(path))
        store.add_image_files([file for file in new if isinstance(file, ImageFile)])
    return found
