"""The pictures of any data, under the names by which those data know them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from sightline.benchmarks import codis_data, iibench_data
from sightline.build.folder import GROUPS
from sightline.build.sources import folder_sources
from sightline.errors import UserError
from sightline.formats.digests import READERS
from sightline.formats.groups import read_groups
from sightline.pictures import BadPicture, look
from sightline.progress import progress
from sightline.types import Picture, PictureFile

T = TypeVar("T")


class Gallery(Struct, frozen=True):
    """Pictures that were looked at, by name, and those that cannot be shown, with why."""

    files: Mapping[str, PictureFile]
    broken: Mapping[str, str]

    def named(self, found: Mapping[str, T]) -> dict[str, T]:
        """What was found by digest, by name."""
        return {name: found[file.digest] for name, file in self.files.items()}


def pictures_in(data: Path) -> dict[str, Picture]:
    """The pictures of a data folder, of any folder of pictures, or of a groups file, by name, in its order.

    The name is CODIS' `image_id`, II-Bench's `local_path` (of every split that is there), the path in a
    groups file, else the path in the folder. UserError where there is no picture, or the data are wrong.
    """
    if not data.exists():
        raise UserError("there is no such folder or file", file=data, expected="pictures for DATA")
    if data.is_file() or (data / GROUPS).is_file():
        return _of_groups(data if data.is_file() else data / GROUPS)
    if (data / "data.json").is_file():
        pairs = codis_data.read_samples(data, False, None)
        return {pair.record[0].image_id: pair.pictures[0] for pair in pairs}
    splits = [split for split in ("test", "dev") if (data / f"{split}.json").is_file()]
    if splits:
        samples = [one for split in splits for one in iibench_data.read_samples(data, split, None, None, ())]
        return _by_path(one.pictures[0] for one in samples)
    return _by_path(Picture(source.picture, source.root) for source in folder_sources(data))


def look_at(pictures: Mapping[str, Picture], *, shown: bool = False) -> Gallery:
    """Look at every picture; `shown` is whether progress is."""
    files: dict[str, PictureFile] = {}
    broken: dict[str, str] = {}
    with (
        ThreadPoolExecutor(READERS) as pool,
        progress("looking at pictures", len(pictures), "pictures", shown=shown) as advance,
    ):
        for name, found in zip(pictures, pool.map(_look, pictures.values()), strict=True):
            if isinstance(found, BadPicture):
                broken[name] = str(found).removeprefix(f"{pictures[name].path}: ")
            else:
                files[name] = found
            advance(1)
    return Gallery(files, broken)


def _of_groups(file: Path) -> dict[str, Picture]:
    root = str(file.parent)
    lines = read_groups(file)
    names = dict.fromkeys(image for line in lines for image in line.images)
    if not names:
        raise UserError("names no picture", file=file, expected="lines with images")
    return {name: Picture(os.path.join(root, name), root) for name in names}


def _by_path(pictures: Iterable[Picture]) -> dict[str, Picture]:
    return {Path(os.path.relpath(one.path, one.root)).as_posix(): one for one in pictures}


def _look(picture: Picture) -> PictureFile | BadPicture:
    try:
        return look(picture, {})
    except BadPicture as error:
        return error
