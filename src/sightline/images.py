"""Image files: inspected before use, and what every model sees of them.

Most files are sent as they are. Decoders differ in what they make of the others: EXIF orientation, 16-bit
channels, transparency, animations, CMYK, formats that few servers read. Those are converted once, in the same
way for endpoints, local models, OCR, builders and the viewer: to the first frame, upright, in 8-bit RGB, on
white. The conversion is the image's transform, a part of the request's key.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from math import ceil, floor
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pybase64
from msgspec import Struct

from sightline.types import HiddenContent, ImageFile, ImageRef, ImageSize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

MAX_SIDE = 30_000
"""The longest side in pixels that is accepted."""
MAX_PIXELS = 120_000_000
MAX_BYTES = 64 * 1024 * 1024

MEDIA_TYPES: Mapping[str, str] = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "AVIF": "image/avif",
    "JPEG2000": "image/jp2",
    "HEIF": "image/heic",
}
"""Format (Pillow's name) -> media type. HEIF (photos of iPhones) needs the extra `heif`."""


SENT_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
"""The formats that are sent as they are, if the image is upright, opaque, still and of 8 bits."""

PNG_EXIF = (b"eXIf", b"Raw profile type exif", b"XML:com.adobe.xmp")
"""The names of the chunks of a PNG that may hold its orientation. They may follow the pixels."""

TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

CONVERTED = "rgb-"
"""The beginning of the transforms of images that no model receives as they are."""
CONVERTED_PNG = CONVERTED + "png"
CONVERTED_JPEG = CONVERTED + "jpeg"

BITS_PER_SAMPLE, PHOTOMETRIC, SAMPLE_FORMAT = 258, 262, 339
"""Tags of TIFF."""
WHITE_IS_ZERO = 0

LOSSLESS_PIXELS = 2048 * 2048
"""Images up to this size are converted to PNG, larger ones to JPEG: a PNG of a photograph is large."""

DARK = 64
"""The brightest level, of 255, of a dark image of more than 8 bits: its pixels may have 14 bits or fewer."""

CONVERTED_BYTES = 20 * 1024 * 1024
QUALITIES = (95, 90, 80, 65, 50)
"""The qualities of such a JPEG: the first with at most CONVERTED_BYTES, otherwise the last."""

HEIF = "HEIF"
HEIF_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
"""The brands with which a HEIF file begins (ISO/IEC 23008-12)."""

UNREADABLE: Mapping[bytes, str] = {
    b"\x00\x00\x00\x0cJXL ": "JPEG XL",
    b"\xff\x0a": "JPEG XL",
    b"8BPS": "PSD",
    b"%PDF": "PDF",
    b"<svg": "SVG",
}
"""The beginning of files in other formats of images -> the format's name, for error messages."""


_BINARY = getattr(os, "O_BINARY", 0)
"""Windows reads files as text without it."""


class BadImage(Exception):  # noqa: N818 - it names the image, as ImageFile does
    """An image that cannot be sent to a model; the text names the file and the reason."""


class ImageLimits(Struct, frozen=True):
    """The images that a model accepts: formats (Pillow's names), bytes, longest side in pixels (0: any)."""

    formats: tuple[str, ...] = SENT_FORMATS
    max_bytes: int = 20 * 1024 * 1024
    max_side: int = 0


class FoundImage(NamedTuple):
    """An image file that was not read yet."""

    name: str
    path: str
    info: os.stat_result


def inspect_image(image: ImageRef, cached: Mapping[str, ImageFile]) -> ImageFile:
    return inspect_found(find_image(image), cached)


def find_image(image: ImageRef) -> FoundImage:
    """Find an image file."""
    try:
        return FoundImage(image.path, *_inside(image))
    except (OSError, ValueError):
        # ValueError: an invalid file name, such as one with a null byte.
        raise BadImage(f"{image.path}: no such image") from None


def inspect_found(found: FoundImage, cached: Mapping[str, ImageFile]) -> ImageFile:
    earlier, stamp = cached.get(found.name), _stamp(found.info)
    if earlier is not None and earlier.stamp == stamp:
        return earlier
    return _inspect(found.name, found.path, stamp)


def decode(file: ImageFile) -> None:
    """Check that an image can be decoded completely; of an animation, its first frame."""
    try:
        with open(file.path, "rb") as source, _opened(source, [file.format]) as image:
            image.load()
    except Exception as error:  # as in _inspect_content
        raise BadImage(f"{file.path}: cannot be decoded: {error}") from None


def transform_for(file: ImageFile, limits: ImageLimits) -> str:
    """The name of the change that an image needs before a model accepts it, part of the key; '' for none."""
    own = own_transform(file)
    side = max(file.width, file.height)
    wide = bool(limits.max_side) and side > limits.max_side
    heavy = _most_bytes(file, own) > limits.max_bytes
    if not wide and not heavy and (own or file.format in limits.formats):
        return own
    light = f"-bytes{limits.max_bytes}" if heavy else ""
    return f"{own and CONVERTED}jpeg-q95-side{limits.max_side if wide else side}{light}"


def own_transform(file: ImageFile) -> str:
    """The change that an image needs for every model, whatever it accepts; '' for none."""
    return _conversion(file.width, file.height) if file.transform.startswith(CONVERTED) else ""


def sent_size(file: ImageFile) -> ImageSize | None:
    """Width and height of the image that is sent; None if they result from a limit of its bytes."""
    _, reduced, most = file.transform.partition("-side")
    if not reduced:
        return file.width, file.height
    side, _, limit = most.partition("-bytes")
    return None if limit else _within(file.width, file.height, int(side))


def read_bytes(file: ImageFile) -> tuple[str, bytes]:
    """Read the media type and the bytes to send: the original ones, or those of the converted image."""
    data = _content(file.path, file.path, file.stamp)
    if not file.transform:
        return MEDIA_TYPES[file.format], data
    return _encoded(_decoded(file, data), file.transform)


def read_original(path: str, digest: str) -> bytes:
    """Read the original bytes of an inspected image; BadImage if they are others by now."""
    try:
        with open(path, "rb") as handle:
            data = handle.read()
    except OSError as error:
        raise BadImage(f"{path}: {error.strerror or error}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise BadImage(f"{path}: changed during the run")
    return data


def data_url(file: ImageFile) -> bytes:
    media, data = read_bytes(file)
    return b"data:%s;base64,%s" % (media.encode(), pybase64.b64encode(data))


def read_image(file: ImageFile) -> Image:
    """Read what every model sees of an image, in RGB: the pixels that `read_bytes` sends."""
    image = _decoded(file, _content(file.path, file.path, file.stamp))
    if file.transform in ("", CONVERTED_PNG):
        return image
    from PIL import Image

    sent = Image.open(io.BytesIO(_encoded(image, file.transform)[1])).convert("RGB")
    sent.info = {}
    return sent


def orientation(image: Image) -> int:
    """The EXIF orientation of an opened image, 1 (upright) to 8. Unreadable EXIF is ignored, as in browsers.

    Pillow searches a PNG for EXIF data by decoding it, so this is asked only where the file may have some.
    """
    from PIL import ExifTags

    try:
        found = image.getexif().get(ExifTags.Base.Orientation)
    except Exception:
        return 1
    return found if isinstance(found, int) and found in range(2, 9) else 1


def _stamp(info: os.stat_result) -> tuple[int, int]:
    """The size of a file in bytes, and its modification time in ns."""
    return info.st_size, info.st_mtime_ns


def _inside(image: ImageRef) -> tuple[str, os.stat_result]:
    """The real path of an image, and its status. BadImage if '..' or a link is outside its folder."""
    if not image.root:
        return image.path, os.stat(image.path)
    real, info = _real(image.path)
    if not real.startswith(os.path.join(_real_folder(_absolute(image.root)), "")):
        raise BadImage(f"{image.path}: is outside the data folder {image.root}")
    return real, info or os.stat(real)


def _real(path: str) -> tuple[str, os.stat_result | None]:
    """A path with its links resolved, and its status; None if it led elsewhere, or there is no such file."""
    folder, name = os.path.split(_absolute(path))
    real, info = os.path.join(_real_folder(folder), name), None
    with suppress(OSError, ValueError):
        info = os.lstat(real)
    if name in ("", ".", "..") or (info is not None and stat.S_ISLNK(info.st_mode)):
        return os.path.realpath(real), None
    return real, info


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


@lru_cache(maxsize=1024)
def _real_folder(folder: str) -> str:
    """A folder with its links resolved; cached, because resolving a link costs several system calls."""
    return os.path.realpath(folder)


def _inspect(name: str, path: str, stamp: tuple[int, int]) -> ImageFile:
    if stamp[0] == 0:
        raise BadImage(f"{name}: the file is empty")
    if stamp[0] > MAX_BYTES:
        raise BadImage(f"{name}: {stamp[0]:,} bytes, more than {MAX_BYTES:,}")
    data = _content(name, path, stamp)
    kind, width, height, transform, hidden = _inspect_content(name, data)
    digest = hashlib.sha256(data).hexdigest()
    return ImageFile(name, digest, kind, width, height, stamp, transform, hidden)


def _content(name: str, path: str, stamp: tuple[int, int]) -> bytes:
    """The bytes of a file with this size and time. BadImage if it has others.

    In the fewest system calls: each lets go of the lock of the interpreter, and the thread then waits for it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _BINARY)
        try:
            info = os.fstat(handle)
            data = os.read(handle, stamp[0] + 1)
            while len(data) < stamp[0] and (more := os.read(handle, stamp[0] + 1 - len(data))):
                data += more
        finally:
            os.close(handle)
    except OSError as error:
        raise BadImage(f"{name}: {error.strerror or error}") from None
    if _stamp(info) != stamp or len(data) != stamp[0]:
        raise BadImage(f"{name}: changed during the run")
    return data


@contextmanager
def _opened(source: IO[bytes], formats: Sequence[str]) -> Iterator[Image]:
    """Open an image with Pillow, of which the plugin for HEIF is no part. A damaged file raises any error."""
    from PIL import Image

    if HEIF in formats:
        import pillow_heif

        pillow_heif.register_heif_opener()
    with warnings.catch_warnings():
        # Pillow warns about large images that are within our limits, and about odd EXIF data.
        warnings.simplefilter("ignore")
        with Image.open(source, formats=tuple(formats)) as image:
            yield image


class _Content(NamedTuple):
    """What the content of an image file is; width and height are those of the upright image."""

    format: str
    width: int
    height: int
    transform: str
    hidden: tuple[HiddenContent, ...]


def _inspect_content(name: str, data: bytes) -> _Content:
    """Inspect an image; BadImage for content that is no image, or whose pixels cannot be shown."""
    from PIL import Image

    kind = _recognized(data)
    if kind == HEIF and find_spec("pillow_heif") is None:
        raise BadImage(f"{name}: is a HEIC image; expected pip install 'sightline[heif]', or a JPEG of it")
    if kind not in ("", HEIF):
        raise BadImage(f"{name}: not an image in a known format, but {kind}; expected a JPEG or PNG of it")
    try:
        with _opened(
            io.BytesIO(data), [HEIF] if kind else [form for form in MEDIA_TYPES if form != HEIF]
        ) as image:
            return _facts(name, image, data)
    except BadImage:
        raise
    except Image.DecompressionBombError:
        raise BadImage(f"{name}: more than {MAX_PIXELS:,} pixels") from None
    except Exception:  # Pillow's readers raise any exception for a damaged file
        if data.startswith(TIFF_STARTS):
            raise BadImage(
                f"{name}: a TIFF with pixels that cannot be shown, such as floating-point colours;"
                " expected a JPEG or PNG of it"
            ) from None
        raise BadImage(f"{name}: not an image in a known format ({', '.join(MEDIA_TYPES)})") from None


def _recognized(data: bytes) -> str:
    """The name of a format that Pillow does not read by itself; '' for any other content."""
    if data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS:
        return HEIF
    return next((name for start, name in UNREADABLE.items() if data.startswith(start)), "")


def _facts(name: str, image: Image, data: bytes) -> _Content:
    """What an opened image is. Only an image that may have transparent pixels is decoded."""
    # Phones write MPO: a JPEG with more images after the first.
    kind = "JPEG" if image.format == "MPO" else str(image.format)
    width, height = image.size
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise BadImage(
            f"{name}: {width} x {height} pixels, more than {MAX_SIDE:,} a side or {MAX_PIXELS:,} in all"
        )
    _check_whole(name, image, data)
    try:
        _white(image)
    except ValueError as error:
        raise BadImage(f"{name}: {error}; expected a JPEG or PNG of it") from None
    moves = kind != "JPEG" and getattr(image, "is_animated", False)
    turned = orientation(image) if _may_be_turned(image, kind, data) else 1
    if turned >= 5:
        width, height = height, width
    # An alpha channel that makes no pixel transparent changes nothing.
    is_transparent, hides = (
        _transparency(name, image, data) if image.has_transparency_data else (False, False)
    )
    is_common = image.mode in ("1", "L", "P", "RGB", "LA", "PA", "RGBA") and _depth(data) <= 8
    converted = kind not in SENT_FORMATS or moves or turned > 1 or is_transparent or not is_common
    hidden: list[HiddenContent] = ["frames"] if moves else []
    if hides:
        hidden.append("transparency")
    if not is_transparent and (image.mode.startswith("I") or _depth(data) > 8) and _is_dark(name, image):
        hidden.append("levels")
    return _Content(kind, width, height, _conversion(width, height) if converted else "", tuple(hidden))


def _check_whole(name: str, image: Image, data: bytes) -> None:
    """Refuse an image whose file ends too early: some servers fill what is missing with grey.

    Only a file without its end is decoded: all pixels may be there nevertheless.
    """
    match image.format:
        case "JPEG" | "MPO":
            ends = _jpeg_ends(data)
        case "PNG":
            ends = b"IEND" in data
        case "GIF":
            ends = data.rstrip(b"\0").endswith(b";")
        case "WEBP":
            ends = int.from_bytes(data[4:8], "little") + 8 <= len(data)
        case _:
            return  # is decoded anyway, to be sent
    if not ends:
        try:
            image.load()
        except Exception as error:  # as in _inspect_content
            raise BadImage(f"{name}: the file ends too early: {error}; expected the whole file") from None


def _jpeg_ends(data: bytes) -> bool:
    """Whether a JPEG has its end marker behind the first scan; its EXIF data may hold a preview with one."""
    at = 2
    while data[at : at + 1] == b"\xff" and at + 4 <= len(data):
        if data[at + 1] == 0xDA:
            return data.find(b"\xff\xd9", at) > 0
        # A marker may follow bytes of 0xFF that fill up.
        at += 1 if data[at + 1] == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return False


def _may_be_turned(image: Image, kind: str, data: bytes) -> bool:
    """Whether an image may have an EXIF orientation. Pillow itself turns TIFF."""
    if kind == "PNG":
        return any(name in data for name in PNG_EXIF)
    return kind != "TIFF" and ("exif" in image.info or "xmp" in image.info)


def _transparency(name: str, image: Image, data: bytes) -> tuple[bool, bool]:
    """Whether some pixel of an image is not opaque, and whether white below it changes its colour."""
    from PIL import ImageChops

    try:
        clear = _with_alpha(image, data)
    except Exception as error:  # as in _inspect_content
        raise BadImage(f"{name}: cannot be decoded: {error}") from None
    if clear.getchannel("A").getextrema()[0] == 255:
        return False, False
    return True, ImageChops.difference(clear.convert("RGB"), _on_white(clear)).getbbox() is not None


def _is_dark(name: str, image: Image) -> bool:
    """Whether no pixel of an image is brighter than a quarter of white, as in 12 bits stored as 16."""
    try:
        brightest = _levels(_rgb(image).convert("L")).max()
    except Exception as error:  # as in _inspect_content
        raise BadImage(f"{name}: cannot be decoded: {error}") from None
    return bool(brightest <= DARK)


def _conversion(width: int, height: int) -> str:
    return CONVERTED_PNG if width * height <= LOSSLESS_PIXELS else CONVERTED_JPEG


def _most_bytes(file: ImageFile, own: str) -> int:
    """The bytes that are sent without a further change: those of the file, or at most of its conversion."""
    if not own:
        return file.stamp[0]
    return min(3 * file.width * file.height + file.height, CONVERTED_BYTES)


# -- Pixels: from any mode of Pillow to RGB


def _decoded(file: ImageFile, data: bytes) -> Image:
    """The first frame, upright, in RGB, transparency on white, 16 bits a channel scaled to 8."""
    try:
        with _opened(io.BytesIO(data), [file.format]) as image:
            image.load()
            flat = _on_white(_with_alpha(image, data)) if image.has_transparency_data else _rgb(image)
            turned = orientation(image)
    except Exception as error:  # as in _inspect_content
        raise BadImage(f"{file.path}: cannot be decoded: {error}") from None
    # The colour profile is not applied.
    flat.info = {}
    return _turned(flat, turned)


def _rgb(image: Image) -> Image:
    return (_eight_bits(image) if image.mode.startswith("I") else image).convert("RGB")


def _with_alpha(image: Image, data: bytes) -> Image:
    """An image that may be transparent, in RGBA."""
    from PIL import Image as Pillow

    key, depth = image.info.get("transparency"), _depth(data)
    if image.mode.startswith("I"):
        clear = _eight_bits(image).convert("LA")
        clear.putalpha(Pillow.fromarray(_levels(image) != key).convert("L"))
        return clear.convert("RGBA")
    # Pillow scales the pixels of 2, 4 and 16 bits to 8, and not the transparent colour of a PNG.
    if image.mode == "L" and isinstance(key, int) and depth in (2, 4):
        image.info["transparency"] = key * 255 // (2**depth - 1)
    elif image.mode == "RGB" and isinstance(key, tuple) and depth == 16:
        image.info["transparency"] = tuple(value >> 8 for value in key)
    return (image.convert("LA") if image.mode == "La" else image).convert("RGBA")


def _on_white(clear: Image) -> Image:
    from PIL import Image

    flat = Image.new("RGB", clear.size, "white")
    flat.paste(clear, mask=clear.getchannel("A"))
    return flat


def _turned(image: Image, orientation: int) -> Image:
    from PIL.Image import Transpose

    turns = (
        Transpose.FLIP_LEFT_RIGHT,
        Transpose.ROTATE_180,
        Transpose.FLIP_TOP_BOTTOM,
        Transpose.TRANSPOSE,
        Transpose.ROTATE_270,
        Transpose.TRANSVERSE,
        Transpose.ROTATE_90,
    )
    return image if orientation == 1 else image.transpose(turns[orientation - 2])


def _depth(data: bytes) -> int:
    """The bits of a channel of a PNG; 8 for other formats."""
    return data[24] if data.startswith(b"\x89PNG") else 8


def _white(image: Image) -> int:
    """The value of white. ValueError for numbers of which none is known to be white."""
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers without a known white value")
    if not image.mode.startswith("I"):
        return 255
    if image.format != "TIFF":
        return 65535
    tags: Any = image
    bits, sample_format = (tags.tag_v2.get(tag, (1,))[0] for tag in (BITS_PER_SAMPLE, SAMPLE_FORMAT))
    if sample_format != 1 or bits > 16:
        kind = "unsigned" if sample_format == 1 else "signed"
        raise ValueError(f"its pixels are {kind} {bits}-bit numbers without a known white value")
    return int(2**bits - 1)


def _levels(image: Image) -> NDArray[np.int64]:
    import numpy as np

    return np.asarray(image, dtype=np.int64)


def _eight_bits(image: Image) -> Image:
    """Scale grey of more than 8 bits to 8; Pillow's own conversion clips it to white."""
    import numpy as np
    from PIL import Image as Pillow

    white, levels, tags = _white(image), _levels(image), getattr(image, "tag_v2", {})
    grey = (levels * 255 + white // 2) // white
    # Pillow inverts such a TIFF only if it has 8 bits or fewer.
    if tags.get(PHOTOMETRIC) == WHITE_IS_ZERO:
        grey = 255 - grey
    return Pillow.fromarray(grey.astype(np.uint8))


# -- Encodings of converted and reduced images


def _encoded(image: Image, transform: str) -> tuple[str, bytes]:
    """The media type and the bytes of an image after the transform; the image may be changed."""
    if transform == CONVERTED_PNG:
        out = io.BytesIO()
        # Photographs: a third of the time of the default level, a tenth more bytes.
        image.save(out, "PNG", compress_level=2)
        return MEDIA_TYPES["PNG"], out.getvalue()
    if transform == CONVERTED_JPEG:
        every = (_jpeg(image, quality) for quality in QUALITIES)
        return MEDIA_TYPES["JPEG"], next(
            (one for one in every if len(one) <= CONVERTED_BYTES), None
        ) or _jpeg(image, QUALITIES[-1])
    return MEDIA_TYPES["JPEG"], _reduced(image, transform)


def _jpeg(image: Image, quality: int) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, subsampling=0)
    return out.getvalue()


def _reduced(image: Image, transform: str) -> bytes:
    """A high-quality JPEG within the limits that the transform names."""
    from PIL import Image

    side, _, most = transform.rpartition("side")[2].partition("-bytes")
    longest = int(side)
    while True:
        image.thumbnail((longest, longest), Image.Resampling.LANCZOS)
        content = _jpeg(image, QUALITIES[0])
        if not most or len(content) <= int(most) or longest == 1:
            return content
        # The bytes grow with the square of the side; the factor makes one more round enough.
        longest = max(1, int(max(image.size) * 0.95 * (int(most) / len(content)) ** 0.5))


def _within(width: int, height: int, side: int) -> ImageSize:
    """The size that Pillow's `thumbnail` gives an image whose sides must not be longer than this."""
    if max(width, height) <= side:
        return width, height
    aspect = width / height

    def nearest(exact: float, off: Callable[[int], float]) -> int:
        return max(min(floor(exact), ceil(exact), key=off), 1)

    if height >= width:
        return nearest(side * aspect, lambda short: abs(aspect - short / side)), side
    return side, nearest(side / aspect, lambda short: abs(aspect - side / short) if short else 0)
