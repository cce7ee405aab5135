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

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sightline.builders.image_io import Form, open_upright, save
from sightline.builders.perturbations import Perturbation
from sightline.builders.run import SourceResult, image_name
from sightline.builders.sources import SourceItem
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.images import BadImage
from sightline.plugins import error_and_line
from sightline.prompts import fill
from sightline.registry import perturbation, plug_in
from sightline.types import Labels

if TYPE_CHECKING:
    from PIL.Image import Image


class Perturb(Struct, frozen=True):
    """The GroupMaker that writes each image unchanged and in every variant of a perturbation.

    Attributes:
        kind: Name of the perturbation.
        prompt: The prompt. `{question}` in it is replaced by the source's question; without `{question}` it
            is used only for sources without a question.
        seed: Seed of the random choices.
        form: Format of the written images.
        plugins: Files that define more perturbations.
    """

    kind: str
    prompt: str
    seed: int = 0
    form: Form = "png"
    plugins: tuple[str, ...] = ()

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        """Make the group of a source."""
        return SourceResult(tuple(self._lines(source, out)))

    def _lines(self, source: SourceItem, out: Path) -> Iterator[GroupLine]:
        perturbation = load_perturbation(self.kind, self.plugins)
        image = open_upright(source.image)
        random = Random(f"{self.kind} {self.seed} {source.id}")
        variants: dict[str, Labels] = {ORIGINAL: {}, **perturbation.variants}
        for variant, labels in variants.items():
            changed = image if variant == ORIGINAL else _applied(perturbation, image, variant, random, source)
            name = image_name(source, variant, self.form)
            save(changed, out / name, self.form)
            yield GroupLine(
                group=source.id,
                variant=variant,
                images=(name,),
                prompt=self._prompt_of(source),
                question=source.question,
                references=source.references,
                labels={**source.labels, **labels},
            )

    def _prompt_of(self, source: SourceItem) -> str:
        if "{question}" in self.prompt:
            return fill(self.prompt, question=source.question)
        return source.question or self.prompt


@cache
def load_perturbation(kind: str, plugins: tuple[str, ...] = ()) -> Perturbation:
    """Load a perturbation and check the names of its variants.

    Args:
        kind: Its name.
        plugins: Files that define more perturbations.

    Returns:
        The perturbation.

    Raises:
        UserError: There is no such perturbation, or its variants are invalid.
    """
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
    perturbation: Perturbation, image: Image, variant: str, random: Random, source: SourceItem
) -> Image:
    """The variant as RGB; BadImage if the perturbation fails on this image, UserError if it returns none."""
    from PIL import Image

    try:
        changed: Any = perturbation.apply(image.copy(), variant, random)
    except (BadImage, MemoryError):
        raise
    except Exception as error:
        raise BadImage(
            f"the perturbation '{perturbation.name}' fails, variant '{variant}': {error_and_line(error)}"
        ) from error
    if not isinstance(changed, Image.Image) or 0 in changed.size:
        raise UserError(
            f"the perturbation '{perturbation.name}' returned no image for its variant '{variant}'",
            file=source.image,
            found=type(changed).__name__,
            expected="a PIL image of one pixel or more",
        )
    return changed if changed.mode == "RGB" else changed.convert("RGB")
