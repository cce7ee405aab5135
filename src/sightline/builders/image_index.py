"""Finds the images of data folders, folders of images and groups files, with their names in the data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sightline.builders.built_folder import GROUPS
from sightline.builders.sources import folder_sources
from sightline.errors import UserError
from sightline.formats.group_file import read_groups
from sightline.registry import benchmark, benchmark_names
from sightline.types import ImageRef


def images_in(data: Path) -> dict[str, ImageRef]:
    """List the images of a data folder, of any folder of images, or of a groups file."""
    if not data.exists():
        raise UserError("there is no such folder or file", file=data, expected="images for DATA")
    if data.is_file() or (data / GROUPS).is_file():
        return _of_groups(data if data.is_file() else data / GROUPS)
    for name in benchmark_names():
        images = benchmark(name).images_by_id(data)
        if images is not None:
            return dict(images)
    return _by_path(ImageRef(source.image, source.root) for source in folder_sources(data))


def _of_groups(file: Path) -> dict[str, ImageRef]:
    root = str(file.parent)
    lines = read_groups(file)
    names = dict.fromkeys(image for line in lines for image in line.images)
    if not names:
        raise UserError("names no image", file=file, expected="lines with images")
    return {name: ImageRef(os.path.join(root, name), root) for name in names}


def _by_path(images: Iterable[ImageRef]) -> dict[str, ImageRef]:
    return {Path(os.path.relpath(one.path, one.root)).as_posix(): one for one in images}
