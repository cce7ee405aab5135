"""What the tests run on nodes; each new worker imports this module, so it imports little."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from sightline.builders.folder import open_upright, save
from sightline.builders.run import SourceResult, image_name
from sightline.builders.sources import SourceItem
from sightline.errors import UserError
from sightline.formats.groups import GroupLine
from sightline.images import BadImage
from sightline.types import ImageFile


class Vanish(Struct, frozen=True):
    """Copies each image, and ends the process at one of them."""

    at: str

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        if source.id == self.at:
            os._exit(1)
        name = image_name(source, "copy", "png")
        save(open_upright(source.image), out / name, "png")
        return SourceResult((GroupLine(source.id, "copy", (name,), "What is it?"),))


def size_of(image: ImageFile) -> tuple[str, int | BadImage]:
    try:
        return image.path, open_upright(image.path).width
    except BadImage as error:
        return image.path, error


def lacking(image: ImageFile) -> tuple[str, int]:
    raise UserError("this node lacks a file", file=image.path)
