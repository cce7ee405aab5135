"""Perturbations that the papers have not, through one small interface; anyone's own joins as a plugin.

The file of a user's own perturbation, for `sightline build perturb SOURCE --kind mirror --plugin mirror.py`:

    from PIL import ImageOps

    class Mirror:
        name = "mirror"
        variants = {"mirrored": {"mirror": "yes"}}

        def apply(self, picture, variant, random):
            return ImageOps.mirror(picture)

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

from sightline.build.decode import Form, open_upright, save
from sightline.build.sources import Source
from sightline.build.workshop import Made, picture_name
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.pictures import BadPicture
from sightline.prompts import fill
from sightline.registry import perturbation, plug_in
from sightline.types import Labels

if TYPE_CHECKING:
    from PIL.Image import Image


class Perturbation(Protocol):
    """One way to change a picture, in some variants."""

    name: str
    variants: Mapping[str, Labels]
    """Variant -> its labels, such as {"q10": {"quality": "10"}}; a name is part of a file's name."""

    def apply(self, picture: Image, variant: str, random: Random) -> Image:
        """The variant of an upright RGB picture; choices come only from `random`.

        `sightline.pictures.BadPicture` drops the picture, with its text as the reason.
        """
        ...


class Perturb(Struct, frozen=True):
    """Writes each picture as it is and in every variant of a perturbation, known by its name.

    `plugins` are files that define more perturbations. A source is asked its own question, in the place of
    `{question}` where `prompt` has it; one that has none is asked `prompt`.
    """

    kind: str
    prompt: str
    seed: int = 0
    form: Form = "png"
    plugins: tuple[str, ...] = ()

    def __call__(self, source: Source, out: Path) -> Made:
        """Make the group of a source; BadPicture where its picture cannot be used."""
        return Made(tuple(self._lines(source, out)))

    def _lines(self, source: Source, out: Path) -> Iterator[GroupLine]:
        how, picture = named(self.kind, self.plugins), open_upright(source.picture)
        random = Random(f"{self.kind} {self.seed} {source.id}")
        variants: dict[str, Labels] = {ORIGINAL: {}, **how.variants}
        for variant, labels in variants.items():
            changed = picture if variant == ORIGINAL else _applied(how, picture, variant, random, source)
            name = picture_name(source, variant, self.form)
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

    def _asked(self, source: Source) -> str:
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
    # An underscore ends the source's id in a picture's name; a second one could give two pictures one name.
    wrong = [name for name in variants if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", name)]
    if wrong or not variants or ORIGINAL in variants:
        raise UserError(
            f"the perturbation '{kind}' has variants that cannot be used",
            found=wrong or list(variants),
            expected="at least one, named in letters, digits, dots and hyphens, none of them 'original'",
        )
    return found


class Crop:
    """A part of the picture, at a place drawn by the seed: so much of its width and of its height."""

    name = "crop"
    variants: Mapping[str, Labels] = {f"c{share}": {"crop": f"{share} %"} for share in (90, 75, 50)}

    def apply(self, picture: Image, variant: str, random: Random) -> Image:
        """The part; at least one pixel."""
        share = int(variant[1:]) / 100
        width, height = (max(1, round(side * share)) for side in picture.size)
        left, top = random.randint(0, picture.width - width), random.randint(0, picture.height - height)
        return picture.crop((left, top, left + width, top + height))


class Jpeg:
    """The picture as it comes back from a JPEG of low quality."""

    name = "jpeg"
    variants: Mapping[str, Labels] = {f"q{quality}": {"quality": str(quality)} for quality in (50, 25, 10)}

    def apply(self, picture: Image, variant: str, random: Random) -> Image:
        """The decoded JPEG, its colours at half the resolution, as is usual."""
        from PIL import Image

        out = io.BytesIO()
        picture.save(out, "JPEG", quality=int(variant[1:]), subsampling=2)
        with Image.open(out) as compressed:
            return compressed.convert("RGB")


class Rotate:
    """The picture turned by a few degrees, to a side drawn by the seed; grey fills the corners."""

    name = "rotate"
    variants: Mapping[str, Labels] = {f"d{angle}": {"degrees": str(angle)} for angle in (5, 10, 15)}

    def apply(self, picture: Image, variant: str, random: Random) -> Image:
        """The turned picture, of the same size."""
        from PIL import Image

        angle = int(variant[1:]) * random.choice((-1, 1))
        return picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=(127, 127, 127))


class Blur:
    """The picture out of focus: a Gaussian whose radius is so many thousandths of the longer side."""

    name = "blur"
    variants: Mapping[str, Labels] = {f"b{radius}": {"blur": str(radius)} for radius in (2, 5, 10)}

    def apply(self, picture: Image, variant: str, random: Random) -> Image:
        """The blurred picture."""
        from PIL import ImageFilter

        return picture.filter(ImageFilter.GaussianBlur(int(variant[1:]) * max(picture.size) / 1000))


def _applied(how: Perturbation, picture: Image, variant: str, random: Random, source: Source) -> Image:
    """The variant as RGB; UserError where a perturbation fails or gives no picture."""
    from PIL import Image

    try:
        changed: Any = how.apply(picture.copy(), variant, random)
    except (BadPicture, MemoryError):
        raise
    except Exception as error:
        raise UserError(
            f"the perturbation '{how.name}' fails on this picture, variant '{variant}': {error!r}",
            file=source.picture,
        ) from error
    if not isinstance(changed, Image.Image) or 0 in changed.size:
        raise UserError(
            f"the perturbation '{how.name}' gave no picture for its variant '{variant}'",
            file=source.picture,
            found=type(changed).__name__,
            expected="a PIL image of one pixel or more",
        )
    return changed if changed.mode == "RGB" else changed.convert("RGB")
