"""Reads any supported image as an upright RGB one, and writes PNG and JPEG reproducibly."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sightline.formats.files import write_atomically
from sightline.images import BadImage, inspect_image, open_image
from sightline.types import ImageRef

if TYPE_CHECKING:
    from PIL.Image import Image

Form = Literal["png", "jpeg"]

ENDINGS: Mapping[str, tuple[str, ...]] = {
    "JPEG": (".jpg", ".jpeg"),
    "PNG": (".png",),
    "WEBP": (".webp",),
    "GIF": (".gif",),
    "BMP": (".bmp",),
    "TIFF": (".tiff", ".tif"),
    "AVIF": (".avif",),
    "JPEG2000": (".jp2", ".j2k", ".jpx"),
    "HEIF": (".heic", ".heif"),
}
"""Format (Pillow's name) -> possible endings of its files; written files get the first."""
SUFFIXES = tuple(ending for endings in ENDINGS.values() for ending in endings)


def open_upright(path: str | Path) -> Image:
    """Read an image as upright RGB.

    EXIF rotation is applied. Of an animation the first frame is taken. Transparent pixels are laid on white,
    16 bits a channel become 8, CMYK and grey become RGB; the colour profile and other metadata are dropped.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns about large images that are within our limits, and about odd EXIF data.
            warnings.simplefilter("ignore")
            known = inspect_image(ImageRef(str(path)), {})
            with open_image(path, [known.format]) as image:
                image.load()
                flat = _flat(_upright(image))
    except BadImage:
        raise
    except Exception as error:  # Pillow raises many kinds of errors for a damaged file
        raise BadImage(f"{path}: cannot be decoded: {error}") from None
    flat.info = {}
    return flat


def save(image: Image, path: Path, form: Form) -> None:
    """Write an image atomically. The same pixels always give the same bytes."""
    out = io.BytesIO()
    if form == "png":
        # Photographs of 768 pixels: a third of the time of the default level, a tenth more bytes.
        image.save(out, "PNG", compress_level=2, icc_profile=None)
    else:
        image.save(out, "JPEG", quality=95, subsampling=0, icc_profile=None, comment=b"")
    write_atomically(path, [out.getvalue()])


def rotates_in_place(path: str) -> bool:
    """Whether EXIF rotates or mirrors an image without a change of its size, which would reveal it."""
    from PIL import ExifTags

    with open_image(path, [inspect_image(ImageRef(path), {}).format]) as image:
        try:
            orientation = image.getexif().get(ExifTags.Base.Orientation)
        except Exception:  # unreadable EXIF is ignored, as in `open_upright`
            return False
        return orientation in {2, 3, 4} or (orientation in {5, 6, 7, 8} and image.width == image.height)


def _upright(image: Image) -> Image:
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # noqa: S110 - unreadable EXIF is ignored, as in browsers
        pass
    return image


def _flat(image: Image) -> Image:
    """Convert to RGB; ValueError if the mode has no RGB form."""
    from PIL import Image

    if image.mode.startswith("I"):
        image = _eight_bits(image)
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers without a known white value")
    if not image.has_transparency_data:
        return image.convert("RGB")
    clear = image.convert("RGBA")
    flat = Image.new("RGB", clear.size, "white")
    flat.paste(clear, mask=clear.getchannel("A"))
    return flat


def _eight_bits(image: Image) -> Image:
    """Convert 16-bit grey to 8 bits; Pillow's own conversion would clip it to white."""
    import numpy as np
    from PIL import Image

    values = np.asarray(image, dtype=np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise ValueError("its grey values are not 16-bit numbers")
    return Image.fromarray(((values + 128) // 257).astype(np.uint8))
