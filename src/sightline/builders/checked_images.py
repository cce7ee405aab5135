"""Checks images before work begins: the readable ones with their digests, the broken ones with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from msgspec import Struct

from sightline.builders.sources import SourceItem, refuse_duplicate_ids
from sightline.formats.digests import READERS
from sightline.images import BadImage, inspect_image
from sightline.progress import progress
from sightline.types import ImageFile, ImageRef

T = TypeVar("T")


class CheckedImages(Struct, frozen=True):
    """Readable images by name, and broken ones by name with the reason."""

    files: Mapping[str, ImageFile]
    broken: Mapping[str, str]

    def named(self, by_digest: Mapping[str, T]) -> dict[str, T]:
        """Turn results by digest into results by name."""
        return {name: by_digest[file.digest] for name, file in self.files.items()}


def check_images(images: Mapping[str, ImageRef], *, show_progress: bool = False) -> CheckedImages:
    """Check whether images are readable, and compute their digests."""
    files: dict[str, ImageFile] = {}
    broken: dict[str, str] = {}
    with (
        ThreadPoolExecutor(READERS) as pool,
        progress("checking images", len(images), "images", show_progress=show_progress) as advance,
    ):
        for name, checked in zip(images, pool.map(_look, images.values()), strict=True):
            if isinstance(checked, BadImage):
                broken[name] = str(checked).removeprefix(f"{images[name].path}: ")
            else:
                files[name] = checked
            advance(1)
    return CheckedImages(files, broken)


def check_sources(
    sources: Sequence[SourceItem], folder_of: Mapping[str, str], *, show_progress: bool = False
) -> tuple[dict[str, ImageFile], dict[str, str]]:
    """Check the images of sources; each image is read once."""
    refuse_duplicate_ids(sources)
    images = {f"{source.root}\0{source.image}": ImageRef(source.image, source.root) for source in sources}
    checked = check_images(images, show_progress=show_progress)
    files: dict[str, ImageFile] = {}
    dropped: dict[str, str] = {}
    for source in sources:
        name = f"{source.root}\0{source.image}"
        if name in checked.broken:
            dropped[source.id] = drop_reason(checked.broken[name], source)
        elif (file := checked.files[name]).digest in folder_of:
            dropped[source.id] = f"its image is in {folder_of[file.digest]}"
        else:
            files[source.id] = file
    return files, dropped


def drop_reason(error: BadImage | str, source: SourceItem) -> str:
    """Why a source is dropped, without paths on disk, which must not change the manifest."""
    return str(error).removeprefix(f"{source.image}: ").removesuffix(f" {source.root}")


def _look(image: ImageRef) -> ImageFile | BadImage:
    try:
        return inspect_image(image, {})
    except BadImage as error:
        return error
