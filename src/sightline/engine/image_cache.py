"""What is seen of image files: looked at once, remembered in the store until a file is another."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.engine.store import Store
from sightline.images import BadImage, inspect_image
from sightline.types import ImageFile, ImageRef


def inspect_images(
    images: Mapping[str, ImageRef], store: Store, *, records: bool
) -> dict[str, ImageFile | BadImage]:
    """What is seen of images by their paths, or why one cannot be shown.

    `records` is whether what is new may be written to the store.
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
