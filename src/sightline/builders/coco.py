"""Reads COCO's instances file: images, objects, categories, and the pixels of an object."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from sightline.builders.sources import confined
from sightline.errors import UserError, needs_extra
from sightline.formats.files import read_bytes
from sightline.text import UNDECODABLE, decode_json, fault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_AREA, MAX_AREA = 0.1, 0.25
"""Bounds of an object's area over its image's, both inclusive (MM-R3, section 3.1, Context Reasoning)."""

EXPECTED = "a file in the format of COCO's instances_val2017.json"

Side = Annotated[int, Meta(ge=1, le=10**6)]
Number = Annotated[int, Meta(ge=0)]


class BadObject(Exception):  # noqa: N818 - it names the thing, as BadImage does
    """An annotated object that cannot be masked; its text is the reason."""


class CocoImage(Struct, frozen=True):
    """An entry of `images`: sizes in pixels, `file_name` relative to the folder of images."""

    id: Number
    file_name: Annotated[str, Meta(min_length=1)]
    width: Side
    height: Side

    @property
    def name(self) -> str:
        """The id with twelve digits, as in COCO's file names."""
        return f"{self.id:012}"


class CocoAnnotation(Struct, frozen=True):
    """An entry of `annotations`: one object, or a crowd of them.

    `bbox` is left, top, width and height in pixels, fractions allowed; `area` is the segmentation's area in
    square pixels. `segmentation` is decoded only when it is used.
    """

    id: int
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    area: float
    iscrowd: bool | int = 0
    segmentation: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def outline(self) -> Any:
        """The segmentation as plain data: polygons, run lengths, or None; BadObject if it is no JSON."""
        try:
            return msgspec.json.decode(self.segmentation)
        except UNDECODABLE as error:
            raise BadObject(f"its segmentation is not JSON: {fault(error)}") from None


class CocoCategory(Struct, frozen=True):
    """An entry of `categories`."""

    id: int
    name: Annotated[str, Meta(min_length=1)]


class CocoInstances(Struct, frozen=True):
    """An instances file: images by id, annotations by image id, names of categories by id."""

    photos: Mapping[int, CocoImage]
    objects: Mapping[int, Sequence[CocoAnnotation]]
    categories: Mapping[int, str]

    def eligible(self, photo: CocoImage) -> list[CocoAnnotation]:
        """Select the objects that can be masked: no crowds, of a tenth to a quarter of the image's area."""
        pixels = photo.width * photo.height
        chosen = (
            one
            for one in self.objects.get(photo.id, ())
            if not one.iscrowd and MIN_AREA <= one.area / pixels <= MAX_AREA
        )
        return sorted(chosen, key=lambda one: one.id)


class _InstancesFile(Struct, frozen=True):
    images: list[CocoImage]
    annotations: list[CocoAnnotation]
    categories: list[CocoCategory]


def read_instances(path: Path) -> CocoInstances:
    whole = decode_json(read_bytes(path), _InstancesFile, path, EXPECTED)
    photos = {one.id: one for one in whole.images}
    names = {one.id: one.name for one in whole.categories}
    _refuse_duplicates((one.id for one in whole.images), "images", path)
    _refuse_duplicates((one.id for one in whole.annotations), "annotations", path)
    _refuse_duplicates((one.id for one in whole.categories), "categories", path)
    for photo in whole.images:
        confined(photo.file_name, path, f"image {photo.id}", "file_name")
    objects: dict[int, list[CocoAnnotation]] = {}
    for one in whole.annotations:
        if one.image_id not in photos:
            raise _dangling(one, "image_id", one.image_id, "images", path)
        if one.category_id not in names:
            raise _dangling(one, "category_id", one.category_id, "categories", path)
        objects.setdefault(one.image_id, []).append(one)
    return CocoInstances(photos, objects, names)


def segmentation_pixels(segmentation: Any, width: int, height: int) -> NDArray[np.bool_]:
    """Compute the pixels of a segmentation with pycocotools.

    `width`, `height`: size of the image in pixels. Returns a mask of shape (height, width), True inside.
    """
    mask = import_coco_mask()
    if isinstance(segmentation, dict):
        sound: Any = _sound_runs(segmentation, width, height)
        drawn = mask.frPyObjects(sound, height, width)
    else:
        drawn = mask.merge(mask.frPyObjects(_sound_polygons(segmentation, width, height), height, width))
    return mask.decode(drawn).astype(bool)  # type: ignore[no-any-return]


def import_coco_mask() -> Any:
    with needs_extra("build", "pycocotools is not installed, which reads COCO's segmentations"):
        from pycocotools import mask
    return mask


def _sound_polygons(segmentation: Any, width: int, height: int) -> list[list[float]]:
    if not isinstance(segmentation, list) or not segmentation:
        raise BadObject("its segmentation is neither polygons nor a run-length encoding")
    for polygon in segmentation:
        if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
            raise BadObject("a polygon of its segmentation has fewer than three points")
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in polygon):
            raise BadObject("a polygon of its segmentation holds something other than numbers")
        if any(_far(x, width) for x in polygon[::2]) or any(_far(y, height) for y in polygon[1::2]):
            raise BadObject("a polygon of its segmentation lies far outside the image")
    return segmentation


def _far(coordinate: float, side: int) -> bool:
    return not math.isfinite(coordinate) or not -side <= coordinate <= 2 * side


def _sound_runs(segmentation: Mapping[str, Any], width: int, height: int) -> dict[str, Any]:
    """The run-length encoding with its runs as a list; they cover the image exactly."""
    size, counts = segmentation.get("size"), segmentation.get("counts")
    if size != [height, width]:
        raise BadObject(f"its segmentation is of size {size}, the image's is {[height, width]}")
    runs = _unpacked(counts) if isinstance(counts, str) else counts
    if not isinstance(runs, list) or not all(type(run) is int and run >= 0 for run in runs):
        raise BadObject("the runs of its segmentation are not counts of pixels")
    if sum(runs) != width * height:
        raise BadObject("the runs of its segmentation do not add up to the image")
    return {"size": size, "counts": runs}


def _unpacked(text: str) -> list[int]:
    """Unpack the runs of a text encoding (pycocotools, maskApi.c: rleFrString): six bits per character.

    >>> _unpacked("5:e2")
    [5, 10, 85]
    """
    runs: list[int] = []
    value = shift = 0
    for letter in text:
        bits = ord(letter) - 48
        if not 0 <= bits < 64 or shift > 30:
            raise BadObject("the runs of its segmentation are not a packed text")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
        value = shift = 0
    if shift:
        raise BadObject("the runs of its segmentation are truncated")
    return runs


def _dangling(one: CocoAnnotation, field: str, value: int, part: str, path: Path) -> UserError:
    return UserError(
        f"is not among the {part}",
        file=path,
        record=f"annotation {one.id}",
        field=field,
        found=value,
        expected=f"the id of an entry of '{part}'",
    )


def _refuse_duplicates(ids: Iterable[int], part: str, path: Path) -> None:
    earlier: set[int] = set()
    for number, one in enumerate(ids):
        if one in earlier:
            raise UserError(
                "this id occurs twice",
                file=path,
                record=f"{part}[{number}]",
                field="id",
                found=one,
                expected="each id once",
            )
        earlier.add(one)
