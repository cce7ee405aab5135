"""Masks one object of each image in three ways: the probes of context reasoning (MM-R3, Chou et al. 2024,
3.1).

The paper names the parts of a masking (1, 3, 5 or 7 lines; rectangle or ellipse; six colours), but not how
they combine. This implementation alternates N horizontal bands of the colour with N-1 gaps, all of equal
height, clipped to the object's box or to the ellipse inscribed in it. One line then hides the whole box, more
lines hide less (60, 56, 54 %), and an ellipse hides less than a rectangle, which agrees with the paper's
explanation of Tables 12 and 13 by the covered area. docs/images/masks.png shows all maskings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct

from sightline.builders.coco import (
    MAX_AREA,
    MIN_AREA,
    BadObject,
    CocoImage,
    CocoInstances,
    import_coco_mask,
    segmentation_pixels,
)
from sightline.builders.folder import Form, open_upright, rotates_in_place, save, share_label
from sightline.builders.run import SourceResult, image_name
from sightline.builders.sources import SourceItem
from sightline.errors import UserError
from sightline.formats.files import read_bytes
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.text import fault, json_records, load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image


KIND = "mask"


class MaskTask(Struct, frozen=True):
    """The `record` of this builder's sources: what to mask.

    Attributes:
        size: Width and height in the instances file, in pixels.
        box: Left, top, width and height of the object's box, in pixels.
        share: The object's area over the image's, 0-1.
    """

    size: tuple[int, int]
    annotation: int = 0
    box: tuple[float, float, float, float] = (0, 0, 0, 0)
    share: float = 0.0
    outline: Any = None
    maskings: tuple[Masking, ...] = ()
    reason: str = ""


class Mask(Struct, frozen=True):
    """The GroupMaker that masks: an unmasked image and three masked ones per source, written in `form`.

    The labels are category, colour, lines, shape and `covered`: the hidden share of the object's pixels in
    steps of ten percent, such as '40-50 %' (absent without a segmentation). `facts` holds the exact hidden
    shares of the object, of its box and of the image, 0-1.
    """

    prompt: str
    form: Form = "png"

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        """Mask the object of a source; drop a source whose record or image does not allow it."""
        task = msgspec.convert(source.record, MaskTask)
        try:
            image, box, object_ = _ready(source, task)
        except BadObject as error:
            return SourceResult(dropped=str(error))
        facts = {"annotation": task.annotation, "box": list(task.box), "object_of_image": task.share}
        lines = [self._line(source, ORIGINAL, image, {}, facts, out)]
        for variant, masking in zip(VARIANTS, task.maskings, strict=True):
            hidden = hidden_pixels(box, *task.size, masking)
            shares = _shares(hidden, box, object_)
            labels = {"colour": masking.colour, "lines": str(masking.lines), "shape": masking.shape}
            if shares["hidden_of_object"] is not None:
                labels["covered"] = share_label(shares["hidden_of_object"])
            painted = {"painted": list(msgspec.structs.astuple(box)), **shares}
            masked = paint(image, hidden, masking.colour)
            lines.append(self._line(source, variant, masked, labels, {**facts, **painted}, out))
        return SourceResult(lines=tuple(lines))

    def _line(
        self,
        source: SourceItem,
        variant: str,
        image: Image,
        labels: Mapping[str, str],
        facts: Mapping[str, Any],
        out: Path,
    ) -> GroupLine:
        name = image_name(source, variant, self.form)
        save(image, out / name, self.form)
        return GroupLine(
            group=source.id,
            variant=variant,
            images=(name,),
            prompt=self.prompt,
            references=source.references,
            labels={**source.labels, **labels},
            facts=facts,
        )


def prompt() -> str:
    text: str = load("sightline.benchmarks.mmr3")["context"]["prompt"]
    return text


def mask_sources(
    instances: CocoInstances, folder: Path, seed: int, assignment: MaskAssignment | None = None
) -> list[SourceItem]:
    """Make a source for every image with an object that can be masked; its record is a MaskTask."""
    import_coco_mask()
    chosen = dict(sorted(instances.photos.items()))
    if assignment is not None:
        chosen = {number: photo for number, photo in chosen.items() if number in assignment.maskings}
        assignment.check_against(instances, chosen)
    tasks = ((photo, _task(instances, photo, seed, assignment)) for photo in chosen.values())
    return [_source(photo, category, task, folder) for photo, (category, task) in tasks if task is not None]


def count_passed_over(instances: CocoInstances, sources: Sequence[SourceItem]) -> dict[str, int]:
    crowds = sum(
        bool(one.iscrowd) and MIN_AREA <= one.area / (photo.width * photo.height) <= MAX_AREA
        for photo in instances.photos.values()
        for one in instances.objects.get(photo.id, ())
    )
    return {"images without a suitable object": len(instances.photos) - len(sources), "crowds": crowds}


def _ready(source: SourceItem, task: MaskTask) -> tuple[Image, PixelBox, NDArray[np.bool_] | None]:
    """The image, the pixels that may be painted, the object's pixels; BadObject if nothing can be masked."""
    if task.reason:
        raise BadObject(task.reason)
    width, height = task.size
    box = whole_pixels(task.box, width, height)
    if box is None:
        raise BadObject(f"object {task.annotation}: its box contains no pixel of the image")
    bands, rows = max(masking.lines for masking in task.maskings), box.bottom - box.top
    if rows < 2 * bands - 1:
        raise BadObject(f"object {task.annotation}: its box is {rows} pixels high, too few for {bands} bands")
    image = open_upright(source.image)
    if image.size != task.size:
        found = f"{image.width} x {image.height}"
        raise BadObject(f"the image is {found} pixels, the instances file has {width} x {height}")
    if rotates_in_place(source.image):
        raise BadObject(
            "its EXIF data rotate or mirror it, and it is unknown whether its boxes are rotated too"
        )
    if task.outline is None:
        return image, box, None
    try:
        object_ = segmentation_pixels(task.outline, width, height)
    except BadObject as error:
        raise BadObject(f"object {task.annotation}: {error}") from None
    if not object_.any():
        raise BadObject(f"object {task.annotation}: its segmentation contains no pixel")
    return image, box, object_


def _shares(
    hidden: NDArray[np.bool_], box: PixelBox, object_: NDArray[np.bool_] | None
) -> dict[str, float | None]:
    """Hidden shares (0-1) of the object, of its box's whole pixels and of the image."""
    painted = int(hidden.sum())
    of_object = None if object_ is None else int((hidden & object_).sum()) / int(object_.sum())
    return {
        "hidden_of_object": of_object,
        "hidden_of_box": painted / ((box.right - box.left) * (box.bottom - box.top)),
        "hidden_of_image": painted / hidden.size,
    }


def _task(
    instances: CocoInstances, photo: CocoImage, seed: int, assignment: MaskAssignment | None
) -> tuple[str, MaskTask | None]:
    """The category and the MaskTask of an image; None without an object that can be masked."""
    random = Random(f"{KIND} {seed} {photo.name}")
    size = (photo.width, photo.height)
    objects = instances.eligible(photo)
    if assignment is not None:
        category = assignment.categories[photo.id]
        objects = [one for one in objects if one.category_id == category]
        if not objects:
            name = instances.categories[category]
            return name, MaskTask(
                size, reason=f"no single '{name}' of a tenth to a quarter of the image in it"
            )
    if not objects:
        return "", None
    one = random.choice(objects)
    maskings = tuple(random.sample(MASKINGS, len(VARIANTS)))
    if assignment is not None:
        maskings = assignment.maskings[photo.id]
    share = one.area / (photo.width * photo.height)
    name = instances.categories[one.category_id]
    try:
        return name, MaskTask(size, one.id, one.bbox, share, one.outline, maskings)
    except BadObject as error:
        return name, MaskTask(size, reason=f"object {one.id}: {error}")


def _source(photo: CocoImage, category: str, task: MaskTask, folder: Path) -> SourceItem:
    return SourceItem(
        id=photo.name,
        image=str(folder / photo.file_name),
        references=(category,),
        labels={"category": category},
        record=msgspec.to_builtins(task),
        root=str(folder),
    )


# -- A mask: its colour, lines and shape, and the pixels that it hides (MM-R3 3.1)

Colour = Literal["red", "blue", "green", "yellow", "white", "black"]
Lines = Literal[1, 3, 5, 7]
Shape = Literal["rectangle", "ellipse"]

COLOURS: Mapping[Colour, tuple[int, int, int]] = {
    "red": (255, 0, 0),
    "blue": (0, 0, 255),
    "green": (0, 255, 0),
    "yellow": (255, 255, 0),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
}
"""The palette of section 3.1 as RGB (0-255). The paper prints only names; these are the pure colours."""

VARIANTS = ("m0", "m1", "m2")


class Masking(Struct, frozen=True, order=True):
    """How an object is masked: `lines` bands of a colour within a shape."""

    colour: Colour
    lines: Lines
    shape: Shape


MASKINGS = tuple(Masking(*parts) for parts in product(get_args(Colour), get_args(Lines), get_args(Shape)))
"""All 48 maskings."""


class PixelBox(Struct, frozen=True):
    """A rectangle of whole pixels; `right` and `bottom` are exclusive."""

    left: int
    top: int
    right: int
    bottom: int


def whole_pixels(box: tuple[float, float, float, float], width: int, height: int) -> PixelBox | None:
    """The pixels that lie wholly inside a box and the image.

    Args:
        box: Left, top, width and height in pixels; fractions are allowed.
        width, height: Size of the image in pixels.

    Returns:
        The rectangle of pixels; None if there is no such pixel.

    >>> whole_pixels((-3.5, 1.25, 8.0, 2.75), 10, 10)
    PixelBox(left=0, top=2, right=4, bottom=4)
    """
    left, top, wide, high = box
    # Numbers near 1e308 add up to infinity, which has no floor.
    right, bottom = (min(max(end, 0), side) for end, side in ((left + wide, width), (top + high, height)))
    inside = PixelBox(math.ceil(max(left, 0)), math.ceil(max(top, 0)), math.floor(right), math.floor(bottom))
    return inside if inside.left < inside.right and inside.top < inside.bottom else None


def pattern(width: int, height: int, lines: int, shape: Shape) -> NDArray[np.bool_]:
    """The pixels of a box that a masking paints: those whose centre lies in a band, and in the ellipse.

    Integer arithmetic makes the result the same on every machine.

    Args:
        width, height: Size of the box in pixels.

    Returns:
        A mask of shape (height, width), True for painted pixels.
    """
    import numpy as np

    rows = 2 * np.arange(height, dtype=np.int64)[:, None] + 1
    columns = 2 * np.arange(width, dtype=np.int64)[None, :] + 1
    bands: NDArray[np.bool_] = (rows * (2 * lines - 1) // (2 * height)) % 2 == 0
    if shape == "rectangle":
        return np.broadcast_to(bands, (height, width)).copy()
    across, down = (columns - width) * height, (rows - height) * width
    inside: NDArray[np.bool_] = across * across + down * down <= (width * height) ** 2
    return bands & inside


def hidden_pixels(box: PixelBox, width: int, height: int, masking: Masking) -> NDArray[np.bool_]:
    """The pixels of an image that a masking paints, all of them in a box.

    `width`, `height`: size of the image in pixels. Returns a mask of shape (height, width), True for painted
    pixels.
    """
    import numpy as np

    hidden = np.zeros((height, width), dtype=bool)
    wide, high = box.right - box.left, box.bottom - box.top
    hidden[box.top : box.bottom, box.left : box.right] = pattern(wide, high, masking.lines, masking.shape)
    return hidden


def paint(image: Image, hidden: NDArray[np.bool_], colour: Colour) -> Image:
    """Paint pixels of an image.

    `hidden`: mask of the pixels to paint, of shape (height, width). Returns a copy with these pixels in that
    colour.
    """
    import numpy as np
    from PIL import Image

    values = np.array(image)
    values[hidden] = COLOURS[colour]
    return Image.fromarray(values)


# -- Reads the authors' label files types.json and labels.json: the maskings and the category of each
#    image

LEFT_OUT = 581719
"""The image that is in the authors' files (1,501 images) but not among the paper's 4,500 maskings: only
without it do the sub-groups have the sizes of Tables 11-13."""

T = TypeVar("T")


class MaskAssignment(Struct, frozen=True):
    """The maskings of each image (m0, m1, m2) and the category of its object, by COCO id.

    Two maskings of an image may be equal, as in 105 of the authors' 1,501 images. `left_out` holds the ids
    that were left out, `labels` the file of the categories.
    """

    maskings: Mapping[int, tuple[Masking, ...]]
    categories: Mapping[int, int]
    left_out: tuple[str, ...]
    labels: str

    def check_against(self, instances: CocoInstances, known: Collection[int]) -> None:
        if not known:
            raise UserError(
                f"none of the {len(self.maskings):,} images of the assignment is in the instances file",
                expected="COCO's instances of the split that the assignment was made from",
            )
        for number in known:
            if self.categories[number] not in instances.categories:
                raise UserError(
                    "is not a category of the instances file",
                    file=self.labels,
                    record=f"{number:012}",
                    found=self.categories[number],
                    expected=f"one of {len(instances.categories):,} ids such as {min(instances.categories)}",
                )

    def absent_from(self, instances: CocoInstances) -> dict[str, str]:
        absent = sorted(self.maskings.keys() - instances.photos.keys())
        return {f"{number:012}": "not in the instances file" for number in absent}


_EXPECTED_ENTRY = (
    f"colors ({', '.join(COLOURS)}), lines ({', '.join(map(str, get_args(Lines)))}) and"
    f" draw_type ({', '.join(get_args(Shape))})"
)


class _MaskingEntry(Struct, frozen=True):
    colors: Colour
    lines: Lines
    draw_type: Shape


def read_assignment(types: Path, labels: Path) -> MaskAssignment:
    """Read an assignment; both files have keys '<COCO id>_<0|1|2>'."""
    drawn = _by_image(_entries(types, _MaskingEntry), types)
    named = _by_image(_entries(labels, int), labels)
    for file, other, ids in ((labels, types, drawn.keys() - named), (types, labels, named.keys() - drawn)):
        if ids:
            raise UserError(f"lacks an image that {other.name} has", file=file, found=f"{min(ids):012}")
    for number, categories in named.items():
        if len(set(categories)) > 1:
            found = ", ".join(str(one) for one in categories)
            raise UserError(
                "has several categories for one object", file=labels, record=f"{number:012}", found=found
            )
    return MaskAssignment(
        maskings={
            number: tuple(Masking(one.colors, one.lines, one.draw_type) for one in entries)
            for number, entries in drawn.items()
            if number != LEFT_OUT
        },
        categories={number: one for number, (one, *_) in named.items() if number != LEFT_OUT},
        left_out=tuple(f"{number:012}" for number in drawn if number == LEFT_OUT),
        labels=str(labels),
    )


def _entries(path: Path, kind: type[T]) -> dict[str, T]:
    """The entries of a JSON object by key; UserError for the first invalid one."""
    objects = [one for _, one in json_records(read_bytes(path), path)]
    if len(objects) != 1 or not objects[0]:
        expected = "one with keys such as 000000111548_0: a COCO id and 0, 1 or 2"
        raise UserError("is not a JSON object of maskings", file=path, expected=expected)
    entries: dict[str, T] = {}
    for key, value in objects[0].items():
        try:
            entries[key] = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            expected = "a category's id" if kind is int else _EXPECTED_ENTRY
            raise UserError(fault(error), file=path, record=key, found=value, expected=expected) from None
    return entries


def _by_image(entries: Mapping[str, T], path: Path) -> dict[int, list[T]]:
    """The entries of each image, ordered by their numbers."""
    found: dict[int, dict[int, T]] = {}
    for key, entry in entries.items():
        form = re.fullmatch(r"([0-9]{1,18})_([0-9]+)", key)
        if not form or int(form[2]) >= len(VARIANTS):
            expected = "keys such as 000000111548_0: a COCO id and 0, 1 or 2"
            raise UserError("is not a key of a masking", file=path, record=key, expected=expected)
        found.setdefault(int(form[1]), {})[int(form[2])] = entry
    for number, numbered in found.items():
        if len(numbered) < len(VARIANTS):
            raise UserError(
                "lacks some of its maskings",
                file=path,
                record=f"{number:012}",
                found=", ".join(f"_{one}" for one in sorted(numbered)),
                expected="_0, _1 and _2",
            )
    return {number: [numbered[n] for n in sorted(numbered)] for number, numbered in found.items()}
