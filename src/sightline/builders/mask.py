"""Masks one object of each image in three ways: the probes of context reasoning (MM-R3, Chou et al. 2024,
3.1).

The paper names the parts of a masking (1, 3, 5 or 7 lines; rectangle or ellipse; six colours), but not how
they combine. This implementation alternates N horizontal bands of the colour with N-1 gaps, all of equal
height, clipped to the object's box or to the ellipse inscribed in it. One line then hides the whole box, more
lines hide less (60, 56, 54 %), and an ellipse hides less than a rectangle, which agrees with the paper's
explanation of Tables 12 and 13 by the covered area. docs/images/masks.png shows all maskings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

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
from sightline.builders.image_io import Form, open_upright, rotates_in_place, save
from sightline.builders.masking import (
    MASKINGS,
    VARIANTS,
    Masking,
    PixelBox,
    hidden_pixels,
    paint,
    whole_pixels,
)
from sightline.builders.run import SourceResult, image_name
from sightline.builders.sources import SourceItem
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.prompts import load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    from sightline.builders.mask_assignment import MaskAssignment

KIND = "mask"


class MaskTask(Struct, frozen=True):
    """The `record` of this builder's sources: what to mask.

    Attributes:
        size: Width and height in the instances file, in pixels.
        box: Left, top, width and height of the object's box, in pixels.
        share: The object's area over the image's, 0-1.
        outline: The object's segmentation or None.
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
    """The paper's prompt for a masked image."""
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
    """Count what is not masked, for the manifest."""
    crowds = sum(
        bool(one.iscrowd) and MIN_AREA <= one.area / (photo.width * photo.height) <= MAX_AREA
        for photo in instances.photos.values()
        for one in instances.objects.get(photo.id, ())
    )
    return {"images without a suitable object": len(instances.photos) - len(sources), "crowds": crowds}


def share_label(share: float) -> str:
    """A label for a share, in steps of ten percent.

    Args:
        share: The share, 0-1.

    >>> share_label(0.4), share_label(1.0)
    ('40-50 %', '90-100 %')
    """
    lower = min(int(share * 10), 9) * 10
    return f"{lower}-{lower + 10} %"


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
