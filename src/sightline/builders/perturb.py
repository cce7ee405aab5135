"""Perturbations of images beyond the papers, with one small interface for plugins.

Example of a plugin, for `sightline build perturb SOURCE --kind mirror --plugin mirror.py`:

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
from inspect import signature
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct

from sightline.builders.folder import Form, open_upright, save
from sightline.builders.run import SourceResult, image_name
from sightline.builders.sources import SourceItem
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.images import BadImage
from sightline.plugins import arguments_of, check_contract, error_and_line, find_entry, plug_in
from sightline.scoring.letters import lettered
from sightline.text import fill
from sightline.types import Labels

if TYPE_CHECKING:
    from PIL.Image import Image


class Perturb(Struct, frozen=True):
    """The GroupMaker that writes each image unchanged and in every variant of a perturbation."""

    kind: str
    prompt: str
    seed: int = 0
    form: Form = "png"
    plugins: tuple[str, ...] = ()

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        return SourceResult(tuple(self._lines(source, out)))

    def _lines(self, source: SourceItem, out: Path) -> Iterator[GroupLine]:
        perturbation = load_perturbation(self.kind, self.plugins)
        image = open_upright(source.image)
        random = Random(f"{self.kind} {self.seed} {source.id}")
        variants: dict[str, Labels] = {ORIGINAL: {}, **perturbation.variants}
        for variant, labels in variants.items():
            shown = Perturbed(image, source.question, source.options)
            if variant != ORIGINAL:
                shown = _applied(perturbation, shown, variant, random, source)
            name = image_name(source, variant, self.form)
            save(shown.image, out / name, self.form)
            yield GroupLine(
                group=source.id,
                variant=variant,
                images=(name,),
                prompt=self._prompt_of(shown),
                question=shown.question or "",
                options=shown.options or (),
                references=source.references,
                labels={**source.labels, **labels},
            )

    def _prompt_of(self, shown: Perturbed) -> str:
        question = "\n".join([shown.question or "", *lettered(shown.options or ())])
        if "{question}" in self.prompt:
            return fill(self.prompt, question=question)
        return question if shown.question else self.prompt


@cache
def load_perturbation(kind: str, plugins: tuple[str, ...] = ()) -> Perturbation | TextPerturbation:
    """Load a perturbation and check the names of its variants."""
    for file in plugins:
        plug_in(file)
    loaded = perturbation(kind)
    # In a file name an underscore ends the id; a second one could give two images the same name.
    wrong = [name for name in loaded.variants if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", name)]
    if wrong or not loaded.variants or ORIGINAL in loaded.variants:
        raise UserError(
            f"the perturbation '{kind}' has invalid variants",
            found=wrong or list(loaded.variants),
            expected="at least one, named in letters, digits, dots and hyphens, none of them 'original'",
        )
    return loaded


def _applied(
    perturbation: Perturbation | TextPerturbation,
    shown: Perturbed,
    variant: str,
    random: Random,
    source: SourceItem,
) -> Perturbed:
    """The variant with its image as RGB; BadImage if the perturbation fails, UserError if it names none."""
    from PIL import Image

    question, options = shown.question or "", shown.options or ()
    try:
        changed: Any
        if "question" in signature(perturbation.apply).parameters:
            text = cast("TextPerturbation", perturbation)
            changed = text.apply(shown.image.copy(), question, options, variant, random)
        else:
            changed = cast("Perturbation", perturbation).apply(shown.image.copy(), variant, random)
    except (BadImage, MemoryError):
        raise
    except Exception as error:
        raise BadImage(
            f"the perturbation '{perturbation.name}' fails, variant '{variant}': {error_and_line(error)}"
        ) from error
    if not isinstance(changed, Perturbed):
        changed = Perturbed(changed)
    image = shown.image if changed.image is None and changed != Perturbed() else changed.image
    if not isinstance(image, Image.Image) or 0 in image.size:
        raise UserError(
            f"the perturbation '{perturbation.name}' returned no image for its variant '{variant}'",
            file=source.image,
            found=type(image).__name__,
            expected="a PIL image of one pixel or more",
        )
    return Perturbed(
        image if image.mode == "RGB" else image.convert("RGB"),
        question if changed.question is None else changed.question,
        options if changed.options is None else tuple(changed.options),
    )


# -- The interface of perturbations, and those that Sightline has beyond the papers


class Perturbation(Protocol):
    """A way to change images, with variants. A plugin implements it without importing it."""

    name: str
    variants: Mapping[str, Labels]
    """Variant -> its labels, such as {"q10": {"quality": "10"}}. File names contain the variant's name."""

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """Make a variant of an image.

        Args:
            image: An upright RGB image.
            variant: The variant.
            random: The only source of random choices.

        Returns:
            The variant.

        Raises:
            sightline.images.BadImage: The image is dropped, with this text as the reason.
        """
        ...


class Perturbed(Struct, frozen=True):
    """What a perturbation changes of a source: at least one of these; None leaves the others as they are.

    Attributes:
        image: The image, a PIL image.
        question: The question.
        options: The options of the question, in the order in which the prompt shows them.
    """

    image: Any = None
    question: str | None = None
    options: tuple[str, ...] | None = None


class TextPerturbation(Protocol):
    """A way to change images and their questions, with variants. A plugin implements it as `Perturbation`."""

    name: str
    variants: Mapping[str, Labels]

    def apply(
        self, image: Image, question: str, options: tuple[str, ...], variant: str, random: Random
    ) -> Perturbed:
        """Make a variant of an image with its question.

        Args:
            image: An upright RGB image.
            question: Its question, '' for none.
            options: The options of the question, () for none.
            variant: The variant.
            random: The only source of random choices.

        Returns:
            What changes.

        Raises:
            sightline.images.BadImage: The image is dropped, with this text as the reason.
        """
        ...


class Crop(Perturbation):
    """Crops the image to a share of its width and height, at a random position."""

    name = "crop"
    variants: Mapping[str, Labels] = {f"c{share}": {"crop": f"{share} %"} for share in (90, 75, 50)}

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """Crop; at least one pixel remains."""
        share = int(variant[1:]) / 100
        width, height = (max(1, round(side * share)) for side in image.size)
        left, top = random.randint(0, image.width - width), random.randint(0, image.height - height)
        return image.crop((left, top, left + width, top + height))


class Jpeg(Perturbation):
    """Compresses the image as a JPEG of low quality."""

    name = "jpeg"
    variants: Mapping[str, Labels] = {f"q{quality}": {"quality": str(quality)} for quality in (50, 25, 10)}

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """Compress with 4:2:0 chroma subsampling, as is usual, and decode."""
        from PIL import Image

        out = io.BytesIO()
        image.save(out, "JPEG", quality=int(variant[1:]), subsampling=2)
        with Image.open(out) as compressed:
            return compressed.convert("RGB")


class Rotate(Perturbation):
    """Rotates the image by a few degrees in a random direction; the corners become grey."""

    name = "rotate"
    variants: Mapping[str, Labels] = {f"d{angle}": {"degrees": str(angle)} for angle in (5, 10, 15)}

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        """Rotate and keep the size."""
        from PIL import Image

        angle = int(variant[1:]) * random.choice((-1, 1))
        return image.rotate(angle, Image.Resampling.BICUBIC, fillcolor=(127, 127, 127))


class Blur(Perturbation):
    """Blurs the image with a Gaussian; the radius is in thousandths of the longer side."""

    name = "blur"
    variants: Mapping[str, Labels] = {f"b{radius}": {"blur": str(radius)} for radius in (2, 5, 10)}

    def apply(self, image: Image, variant: str, random: Random) -> Image:
        from PIL import ImageFilter

        return image.filter(ImageFilter.GaussianBlur(int(variant[1:]) * max(image.size) / 1000))


# -- The names of perturbations

PERTURBATIONS = {
    "blur": "sightline.builders.perturb:Blur",
    "crop": "sightline.builders.perturb:Crop",
    "jpeg": "sightline.builders.perturb:Jpeg",
    "rotate": "sightline.builders.perturb:Rotate",
}


def perturbation(name: str) -> Perturbation | TextPerturbation:
    entry = find_entry("perturbations", name, PERTURBATIONS)
    sees_text = "question" in arguments_of(getattr(entry, "apply", None))
    check_contract("perturbation", name, entry, TextPerturbation if sees_text else Perturbation)
    made: Perturbation | TextPerturbation = entry()
    return made
