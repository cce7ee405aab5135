"""Perturbations that the papers have not, through one small interface; anyone's own joins as a plugin.

The file of a user's own perturbation, for `sightline build perturb SOURCE --kind mirror --plugin mirror.py`:

    from PIL import ImageOps

    class Mirror:
        name = "mirror"
        variants = {"mirrored": {"mirror": "yes"}}

        def apply(self, image, variant, random):
            return ImageOps.mirror(image)

    perturbations = {"mirror": Mirror}
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from sightline.builders.image_io import Form, open_upright, save
from sightline.builders.run import SourceResult, image_name
from sightline.builders.sources import SourceItem
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.images import BadImage
from sightline.prompts import fill
from sightline.registry import perturbation, plug_in
from sightline.types import Labels

if TYPE_CHECKING:
    from PIL.Image import Image


class Perturbation(Protocol):
    """One way to change an image, in some variants."""

    name: str
    variants: Mapping[str, Labels]
    """Variant -> its labels, such as {"q10": {"quality": "10"}}; a name is part of a file's name."""

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """The variant of an upright RGB image; choices come only from `random`.

        `sightline.images.BadImage` drops the image, with its text as the reason.
        """
        ...


class Perturb(Struct, frozen=True):
    """Writes each image as it is and in every variant of a perturbation, known by its name.

    `plugins` are files that define more perturbations. A source is asked its own question, in the place of
    `{question}` where `prompt` has it; one that has none is asked `prompt`.
    """

    kind: str
    prompt: str
    seed: int = 0
    form: Form = "png"
    plugins: tuple[str, ...] = ()

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        """Make the group of a source; BadImage where its image cannot be used."""
        return SourceResult(tuple(self._lines(source, out)))

    def _lines(self, source: SourceItem, out: Path) -> Iterator[GroupLine]:
        how, image = named(self.kind, self.plugins), open_upright(source.image)
        random = Random(f"{self.kind} {self.seed} {source.id}")
        variants: dict[str, Labels] = {ORIGINAL: {}, **how.variants}
        for variant, labels in variants.items():
            changed = image if variant == ORIGINAL else _applied(how, image, variant, random, source)
            name = image_name(source, variant, self.form)
            save(changed, out / name, self.form)
            yield GroupLine(
                group=source.id,
                variant=variant,
                images=(name,),
                prompt=self._asked(source),
                question=source.question,
                references=source.references,
                labels={**source.labels, **labels},
            )

    def _asked(self, source: SourceItem) -> str:
        if "{question}" in self.prompt:
            return fill(self.prompt, question=source.question)
        return source.question or self.prompt


@cache
def named(kind: str, plugins: tuple[str, ...] = ()) -> Perturbation:
    """The perturbation of that name, built in or of a plugin; UserError where it cannot be used."""
    for file in plugins:
        plug_in(file)
    found = perturbation(kind)
    try:
        variants = msgspec.convert(found.variants, dict[str, dict[str, str | tuple[str, ...]]], strict=True)
    except msgspec.ValidationError as error:
        raise UserError(
            f"the perturbation '{kind}' has variants that cannot be used: {error}",
            found=found.variants,
            expected='names with their labels as text, such as {"q10": {"quality": "10"}}',
        ) from None
    # An underscore ends the source's id in an image's name; a second one could give two images one name.
    wrong = [name for name in variants if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", name)]
    if wrong or not variants or ORIGINAL in variants:
        raise UserError(
            f"the perturbation '{kind}' has variants that cannot be used",
            found=wrong or list(variants),
            expected="at least one, named in letters, digits, dots and hyphens, none of them 'original'",
        )
    return found


class Crop:
    """A part of the image, at a place drawn by the seed: so much of its width and of its height."""

    name = "crop"
    variants: Mapping[str, Labels] = {f"c{share}": {"crop": f"{share} %"} for share in (90, 75, 50)}

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """The part; at least one pixel."""
        share = int(variant[1:]) / 100
        width, height = (max(1, round(side * share)) for side in image.size)
        left, top = random.randint(0, image.width - width), random.randint(0, image.height - height)
        return image.crop((left, top, left + width, top + height))


class Jpeg:
    """The image as it comes back from a JPEG of low quality."""

    name = "jpeg"
    variants: Mapping[str, Labels] = {f"q{quality}": {"quality": str(quality)} for quality in (50, 25, 10)}

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """The decoded JPEG, its colours at half the resolution, as is usual."""
        from PIL import Image

        out = io.BytesIO()
        image.save(out, "JPEG", quality=int(variant[1:]), subsampling=2)
        with Image.open(out) as compressed:
            return compressed.convert("RGB")


class Rotate:
    """The image turned by a few degrees, to a side drawn by the seed; grey fills the corners."""

    name = "rotate"
    variants: Mapping[str, Labels] = {f"d{angle}": {"degrees": str(angle)} for angle in (5, 10, 15)}

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """The turned image, of the same size."""
        from PIL import Image

        angle = int(variant[1:]) * random.choice((-1, 1))
        return image.rotate(angle, Image.Resampling.BICUBIC, fillcolor=(127, 127, 127))


class Blur:
    """The image out of focus: a Gaussian whose radius is so many thousandths of the longer side."""

    name = "blur"
    variants: Mapping[str, Labels] = {f"b{radius}": {"blur": str(radius)} for radius in (2, 5, 10)}

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """The blurred image."""
        from PIL import ImageFilter

        return image.filter(ImageFilter.GaussianBlur(int(variant[1:]) * max(image.size) / 1000))


def _applied(how: Perturbation, image: Image, variant: str, random: Random, source: SourceItem) -> Image:
    """The variant as RGB; UserError where a perturbation fails or gives no image."""
    from PIL import Image

    try:
        changed: Any = how.apply(image.copy(), variant, random)
    except (BadImage, MemoryError):
        raise
    except Exception as error:
        raise UserError(
            f"the perturbation '{how.name}' fails on this image, variant '{variant}': {error!r}",
            file=source.image,
        ) from error
    if not isinstance(changed, Image.Image) or 0 in changed.size:
        raise UserError(
            f"the perturbation '{how.name}' gave no image for its variant '{variant}'",
            file=source.image,
            found=type(changed).__name__,
            expected="a PIL image of one pixel or more",
        )
    return changed if changed.mode == "RGB" else changed.convert("RGB")
