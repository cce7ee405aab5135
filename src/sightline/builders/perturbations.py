"""The interface of perturbations, and those that Sightline has beyond the papers."""

from __future__ import annotations

import io
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from sightline.types import Labels

if TYPE_CHECKING:
    from PIL.Image import Image


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
    """What a perturbation changes of a source; None leaves it as it is.

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
        """Blur."""
        from PIL import ImageFilter

        return image.filter(ImageFilter.GaussianBlur(int(variant[1:]) * max(image.size) / 1000))
