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
from inspect import signature
from pathlib import Path
from random import Random
from typing import Any, cast

from msgspec import Struct

from sightline.builders.image_io import Form, open_upright, save
from sightline.builders.perturbations import Perturbation, Perturbed, TextPerturbation
from sightline.builders.run import SourceResult, image_name
from sightline.builders.sources import SourceItem
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.images import BadImage
from sightline.plugins import error_and_line
from sightline.prompts import fill
from sightline.registry import perturbation, plug_in
from sightline.scoring.letters import LETTERS
from sightline.types import Labels


class Perturb(Struct, frozen=True):
    """The GroupMaker that writes each image unchanged and in every variant of a perturbation."""

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
        listed = [
            f"({letter}) {option}" for letter, option in zip(LETTERS, shown.options or (), strict=False)
        ]
        question = "\n".join([shown.question or "", *listed])
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
    """The variant with its image as RGB; BadImage if the perturbation fails, UserError if it returns none."""
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
