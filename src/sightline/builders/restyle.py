"""Restyles images: the probes of image restyling (MM-R3, Chou et al. 2024, section 3.2).

The paper has four styles. A network each (`style_network`) paints candy, mosaic and udnie; grayscale is
Pillow's conversion to grey (ITU-R 601-2). With sizes, the image is first resized to a square (Table 8), so
that the original of that size is comparable too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from sightline.builders.folder import Form, open_upright, save
from sightline.builders.run import SourceResult, image_name
from sightline.builders.sources import SourceItem
from sightline.builders.style_network import Weights, import_torch, on_device, paint, read_weights
from sightline.data.pull import NETWORK_STYLES, weights_file
from sightline.errors import UserError, unknown_name
from sightline.formats.files import file_digest
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.text import load

if TYPE_CHECKING:
    from PIL.Image import Image

KIND = "restyle"
GRAYSCALE = "grayscale"

STYLES = (*NETWORK_STYLES, GRAYSCALE)
"""The styles of the paper, in the order of Table 10."""

MAX_PIXELS = 4_000_000
"""Larger images are first scaled down to this number of pixels, for all styles and the original; a process
then needs less than 2 GB. Tiles would need no limit, but instance normalisation uses statistics of the whole
image: photos restyled in four tiles differed by 12 to 21 of 255 grey levels on average."""


class Style(Struct, frozen=True):
    """A style: its name, and the file and SHA-256 of its network's weights ('' for grayscale)."""

    name: str
    weights: str = ""
    sha256: str = ""


class Restyle(Struct, frozen=True):
    """The GroupMaker that restyles: for each size the original and one image per style.

    Each size is a group of its own, ID@SIZE. The labels are `style`, and `size` ('original', '224') if there
    are sizes. `facts` holds `pixels` (width, height), and `reduced_from` if the image had more than
    `max_pixels`.

    Attributes:
        sizes: Sides in pixels of the squares, 0 for the original size; empty for the original size without
            label.
        max_pixels: Larger images are scaled down to this number of pixels.
    """

    styles: tuple[Style, ...]
    sizes: tuple[int, ...]
    prompt: str
    form: Form = "png"
    max_pixels: int = MAX_PIXELS
    device: str = "cpu"

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        return SourceResult(tuple(self._lines(source, out)))

    def _lines(self, source: SourceItem, out: Path) -> Iterator[GroupLine]:
        image = open_upright(source.image)
        for size in self.sizes or (0,):
            sized = resized(image, size, self.max_pixels)
            reduced = {} if size or sized.size == image.size else {"reduced_from": list(image.size)}
            for variant, styled_image in self._variants(sized):
                group = structs.replace(source, id=group_id(source, size))
                name = image_name(group, variant, self.form)
                save(styled_image, out / name, self.form)
                styled = {} if variant == ORIGINAL else {"style": variant}
                size_label = {"size": str(size or ORIGINAL)} if self.sizes else {}
                yield GroupLine(
                    group=group.id,
                    variant=variant,
                    images=(name,),
                    prompt=source.question or self.prompt,
                    references=source.references,
                    labels={**source.labels, **styled, **size_label},
                    facts={"pixels": list(sized.size), **reduced},
                )

    def _variants(self, image: Image) -> Iterator[tuple[str, Image]]:
        yield ORIGINAL, image
        for style in self.styles:
            if style.weights:
                yield style.name, _painted(image, style, self.device)
            else:
                yield style.name, image.convert("L").convert("RGB")


def prompt() -> str:
    text: str = load("sightline.benchmarks.mmr3")["restyling"]["prompt"]
    return text


def find_styles(names: Iterable[str], folder: Path) -> tuple[Style, ...]:
    """Find styles and check their weights. torch is imported only if a style has a network."""
    styles = tuple(_style(name, folder) for name in names)
    for name, count in Counter(style.name for style in styles).items():
        if count > 1 or name == ORIGINAL:
            reason = "is the unchanged image" if name == ORIGINAL else "is named twice"
            raise UserError(f"the style '{name}' {reason}", expected="styles whose names differ")
    for style in styles:
        if style.weights:
            read_weights(Path(style.weights))
    return styles


def group_id(source: SourceItem, size: int) -> str:
    """The id of a source's group in one size. `size`: side in pixels, 0 for the original size."""
    return f"{source.id}@{size}" if size else source.id


def resized(image: Image, size: int, max_pixels: int) -> Image:
    """Resize an image. `size`: side of the square in pixels; 0 keeps the proportions. `max_pixels`: largest
    number of pixels for size 0.
    """
    from PIL import Image

    if size:
        return image.resize((size, size), Image.Resampling.LANCZOS)
    width, height = image.size
    if width * height <= max_pixels:
        return image
    scale = (max_pixels / (width * height)) ** 0.5
    # A side below one pixel becomes one pixel, so that the other side must shrink more.
    narrow = max(1, int(width * scale))
    low = max(1, min(int(height * scale), max_pixels // narrow))
    return image.resize((min(narrow, max_pixels // low), low), Image.Resampling.LANCZOS)


def refuse_equal_names(sources: Iterable[SourceItem], sizes: Sequence[int], styles: Iterable[Style]) -> None:
    """Refuse a build in which two images would have one file name."""
    variants = (ORIGINAL, *(style.name for style in styles))
    names = Counter(
        f"{group_id(source, size)}_{variant}"
        for source in sources
        for size in sizes or (0,)
        for variant in variants
    )
    for name, count in names.items():
        if count > 1:
            raise UserError(f"{count} images would have the name '{name}'", expected="distinct ids")


def device_versions(styles: Iterable[Style], device: str | None) -> dict[str, str]:
    """Choose the device, and name what besides the weights may change a painted pixel.

    `device`: torch's name of a device; None takes a GPU if there is one.
    """
    if not any(style.weights for style in styles):
        return {}
    torch = import_torch()
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).partition("\n")[0]
        raise UserError(f"--device cannot be used: {why}", found=chosen, expected="cpu, or cuda") from None
    return {"torch": str(torch.__version__), "device": chosen}


def _style(name: str, folder: Path) -> Style:
    if name == GRAYSCALE:
        return Style(GRAYSCALE)
    path = Path(name)
    if path.suffix in (".pth", ".bin") or len(path.parts) > 1:
        if not path.is_file():
            raise UserError("does not exist", file=path, expected="weights of a style network")
    elif name in NETWORK_STYLES:
        path = weights_file(name, folder)
    else:
        raise unknown_name("style", name, (*STYLES, "a path of weights"))
    return Style(path.stem, str(path.absolute()), file_digest(path))


def _painted(image: Image, style: Style, device: str) -> Image:
    import numpy as np
    from PIL import Image

    return Image.fromarray(paint(_weights(style, device), np.asarray(image)))


@lru_cache(maxsize=16)
def _weights(style: Style, device: str) -> Weights:
    """A network's weights; each process reads them once."""
    return on_device(read_weights(Path(style.weights)), device)
