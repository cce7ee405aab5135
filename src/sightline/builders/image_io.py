"""Images in and out for the builders: any that is known becomes an upright RGB one, or is refused."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sightline.formats.files import write_atomically
from sightline.images import BadImage, inspect_image
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
}
"""How files of a format (Pillow's name) may end; what is written ends in the first."""
SUFFIXES = tuple(ending for endings in ENDINGS.values() for ending in endings)


def open_upright(path: str | Path) -> Image:
    """The image as "RGB", turned as its EXIF says, of an animation the first frame.

    What shows through is laid on white, 16 bits a channel become 8, CMYK and grey become RGB; colour profile
    and other remarks are dropped. Raises BadImage, naming the file, where it is missing, empty, cut off, no
    image in a known format, larger than `sightline.images` allows, or of a kind that has no RGB form.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Pillow warns of images that are large and still within our limits, and of odd EXIF.
            warnings.simplefilter("ignore")
            known = inspect_image(ImageRef(str(path)), {})
            with Image.open(path, formats=[known.format]) as image:
                image.load()
                flat = _flat(_upright(image))
    except BadImage:
        raise
    except Exception as error:  # Pillow's readers raise whatever they stumble over in a damaged file
        raise BadImage(f"{path}: cannot be decoded: {error}") from None
    flat.info = {}
    return flat


def save(image: Image, path: Path, form: Form) -> None:
    """Write the image whole or not at all; the same pixels always give the same bytes.

    PNG loses nothing; JPEG has quality 95 and full colour resolution. EnvironmentFailedError where the disk
    refuses.
    """
    out = io.BytesIO()
    if form == "png":
        # A third of the time of Pillow's own level, for a tenth more bytes (photographs of 768 pixels).
        image.save(out, "PNG", compress_level=2, icc_profile=None)
    else:
        image.save(out, "JPEG", quality=95, subsampling=0, icc_profile=None, comment=b"")
    write_atomically(path, [out.getvalue()])


def _upright(image: Image) -> Image:
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # noqa: S110 - EXIF that cannot be read says nothing, as in browsers
        pass
    return image


def _flat(image: Image) -> Image:
    """The image as RGB; ValueError from Pillow where its mode has no such form."""
    from PIL import Image

    if image.mode.startswith("I"):
        image = _eight_bits(image)
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers, of which none is known to be white")
    if not image.has_transparency_data:
        return image.convert("RGB")
    clear = image.convert("RGBA")
    flat = Image.new("RGB", clear.size, "white")
    flat.paste(clear, mask=clear.getchannel("A"))
    return flat


def _eight_bits(image: Image) -> Image:
    """A grey image of 16 bits as one of 8; Pillow's own conversion would clip it to white."""
    import numpy as np
    from PIL import Image

    values = np.asarray(image, dtype=np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise ValueError("its grey values are no 16-bit ones")
    return Image.fromarray(((values + 128) // 257).astype(np.uint8))
