"""Masks one object of each image in three ways: the probes of context reasoning (Chou et al. 2024, 3.1).

The paper names the parts of a masking (1, 3, 5 or 7 lines; rectangle or ellipse; six colours), not how they
combine. Read here as: N horizontal bands of the colour alternate with N-1 gaps, all of equal height, clipped
to the object's box or to the ellipse inscribed in it. One line then hides the whole box and more lines hide
less of it (60, 56, 54 %), an ellipse less than a rectangle, which is how the paper explains Tables 12 and 13
by the area covered; docs/images/masks.png shows them all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from msgspec import Struct

from sightline.builders.coco import LEAST, MOST, BadObject, CocoImage, CocoInstances, coco_mask, pixels
from sightline.builders.image_io import Form, open_upright, save
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
"""The palette of 3.1 as red, green and blue (0-255); the paper prints names only, these are the pure ones."""

VARIANTS = ("m0", "m1", "m2")


class Masking(Struct, frozen=True, order=True):
    """How an object is hidden: `lines` bands of a colour within a shape."""

    colour: Colour
    lines: Lines
    shape: Shape


MASKINGS = tuple(Masking(*parts) for parts in product(get_args(Colour), get_args(Lines), get_args(Shape)))
"""All 48 of them."""


class PixelBox(Struct, frozen=True):
    """A rectangle of whole pixels: `right` and `bottom` are the first ones outside."""

    left: int
    top: int
    right: int
    bottom: int


class MaskTask(Struct, frozen=True):
    """What is to be done to an image: the record of a SourceItem of this builder.

    `size` is (width, height) as the instances file has it, `share` the object's area over the image's,
    `outline` the object's segmentation or None. `reason` says why nothing can be done ('' where it can).
    """

    size: tuple[int, int]
    annotation: int = 0
    box: tuple[float, float, float, float] = (0, 0, 0, 0)
    share: float = 0.0
    outline: Any = None
    maskings: tuple[Masking, ...] = ()
    reason: str = ""


class Mask(Struct, frozen=True):
    """The GroupMaker that paints: an unmasked image and three masked ones a source, in `form`.

    Labels are category, colour, lines, shape and `covered`: the tenth into which the share of the object's
    pixels that are hidden falls ('40-50 %'; by its segmentation, and absent where it has none). `facts` hold
    the exact shares of the object, of its box and of the image, 0-1.
    """

    prompt: str
    form: Form = "png"

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        """Mask the object of a source; one whose record or image does not allow it is dropped."""
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
                labels["covered"] = tenth(shares["hidden_of_object"])
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
    """The question that the paper asks of a masked image."""
    words: str = load("sightline.benchmarks.mmr3")["context"]["prompt"]
    return words


def mask_sources(
    instances: CocoInstances, folder: Path, seed: int, assignment: MaskAssignment | None = None
) -> list[SourceItem]:
    """A SourceItem for every image with an object that may be masked, by image id; its record is a MaskTask.

    Which object and which three distinct maskings is drawn by `seed` for each image alone. An `assignment`
    says both instead, for the images that both know: where several objects of its category may be masked,
    the draw decides (the authors' files do not say which it was), where none may the source has a reason.
    Raises UserError where pycocotools is missing or the assignment does not fit the instances.
    """
    coco_mask()
    chosen = dict(sorted(instances.photos.items()))
    if assignment is not None:
        chosen = {number: photo for number, photo in chosen.items() if number in assignment.maskings}
        assignment.check_against(instances, chosen)
    tasks = ((photo, _task(instances, photo, seed, assignment)) for photo in chosen.values())
    return [_source(photo, category, task, folder) for photo, (category, task) in tasks if task is not None]


def passed_over(instances: CocoInstances, sources: Sequence[SourceItem]) -> dict[str, int]:
    """How many images have no object that may be masked, and how many crowds would else be such objects."""
    crowds = sum(
        bool(one.iscrowd) and LEAST <= one.area / (photo.width * photo.height) <= MOST
        for photo in instances.photos.values()
        for one in instances.objects.get(photo.id, ())
    )
    return {"images without an object that fits": len(instances.photos) - len(sources), "crowds": crowds}


def whole_pixels(box: tuple[float, float, float, float], width: int, height: int) -> PixelBox | None:
    """The pixels that lie wholly inside a box (left, top, width, height) and the image; None for none.

    >>> whole_pixels((-3.5, 1.25, 8.0, 2.75), 10, 10)
    PixelBox(left=0, top=2, right=4, bottom=4)
    """
    left, top, wide, high = box
    # Numbers as large as 1e308 add up to infinity, which has no floor.
    right, bottom = (min(max(end, 0), side) for end, side in ((left + wide, width), (top + high, height)))
    inside = PixelBox(math.ceil(max(left, 0)), math.ceil(max(top, 0)), math.floor(right), math.floor(bottom))
    return inside if inside.left < inside.right and inside.top < inside.bottom else None


def pattern(width: int, height: int, lines: int, shape: Shape) -> NDArray[np.bool_]:
    """What a masking paints of a box of that size: shape (height, width), True where it does.

    A pixel is painted where its centre lies in one of the `lines` bands, and in the ellipse. Whole numbers
    throughout, so that it is the same on every machine.
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
    """What a masking paints of an image, all of it in `box`: shape (height, width), True where it does."""
    import numpy as np

    hidden = np.zeros((height, width), dtype=bool)
    wide, high = box.right - box.left, box.bottom - box.top
    hidden[box.top : box.bottom, box.left : box.right] = pattern(wide, high, masking.lines, masking.shape)
    return hidden


def paint(image: Image, hidden: NDArray[np.bool_], colour: Colour) -> Image:
    """A copy of an RGB image with the hidden pixels in that colour, all others as they were."""
    import numpy as np
    from PIL import Image

    values = np.array(image)
    values[hidden] = COLOURS[colour]
    return Image.fromarray(values)


def tenth(share: float) -> str:
    """The tenth into which a share (0-1) falls, its lower bound included, as a label.

    >>> tenth(0.4), tenth(1.0)
    ('40-50 %', '90-100 %')
    """
    lower = min(int(share * 10), 9) * 10
    return f"{lower}-{lower + 10} %"


def _ready(source: SourceItem, task: MaskTask) -> tuple[Image, PixelBox, NDArray[np.bool_] | None]:
    """The image, what may be painted of it, the object's pixels; BadObject where nothing can be done."""
    if task.reason:
        raise BadObject(task.reason)
    width, height = task.size
    box = whole_pixels(task.box, width, height)
    if box is None:
        raise BadObject(f"object {task.annotation}: its box holds no pixel of the image")
    bands, rows = max(masking.lines for masking in task.maskings), box.bottom - box.top
    if rows < 2 * bands - 1:
        raise BadObject(f"object {task.annotation}: its box is {rows} pixels high, too few for {bands} bands")
    image = open_upright(source.image)
    if image.size != task.size:
        found = f"{image.width} x {image.height}"
        raise BadObject(f"the image is {found} pixels, the instances file says {width} x {height}")
    if _turned_in_place(source.image):
        raise BadObject("its EXIF data turn or mirror it: whether its boxes are drawn so is not known")
    if task.outline is None:
        return image, box, None
    try:
        object_ = pixels(task.outline, width, height)
    except BadObject as error:
        raise BadObject(f"object {task.annotation}: {error}") from None
    if not object_.any():
        raise BadObject(f"object {task.annotation}: its segmentation holds no pixel")
    return image, box, object_


def _turned_in_place(path: str) -> bool:
    """Whether EXIF turns or mirrors an image whose sides stay the same, so that they cannot tell how."""
    from PIL import ExifTags, Image

    with Image.open(path) as image:
        try:
            turned = image.getexif().get(ExifTags.Base.Orientation)
        except Exception:  # EXIF that cannot be read turns nothing, as in `open_upright`
            return False
        return turned in {2, 3, 4} or (turned in {5, 6, 7, 8} and image.width == image.height)


def _shares(
    hidden: NDArray[np.bool_], box: PixelBox, object_: NDArray[np.bool_] | None
) -> dict[str, float | None]:
    """Shares (0-1) that are hidden of the object, of its box's whole pixels and of the image."""
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
    """The category and the MaskTask of an image; None where no object of it may be masked."""
    random = Random(f"{KIND} {seed} {photo.name}")
    size = (photo.width, photo.height)
    objects = instances.eligible(photo)
    if assignment is not None:
        wanted = assignment.categories[photo.id]
        objects = [one for one in objects if one.category_id == wanted]
        if not objects:
            name = instances.categories[wanted]
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
