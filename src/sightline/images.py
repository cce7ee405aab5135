"""Image files: inspected before use, read when sent, and re-encoded only if a model requires it."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import pybase64
from msgspec import Struct

from sightline.types import ImageFile, ImageRef

if TYPE_CHECKING:
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

    formats: tuple[str, ...] = ("JPEG", "PNG", "WEBP", "GIF")
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
        with open_image(file.path, [file.format]) as image:
            image.load()
    except Exception as error:  # as in _header
        raise BadImage(f"{file.path}: cannot be decoded: {error}") from None


def transform_for(file: ImageFile, limits: ImageLimits) -> str:
    """The name of the change that an image needs before a model accepts it, part of the key; '' for none."""
    side = max(file.width, file.height)
    wide = bool(limits.max_side) and side > limits.max_side
    heavy = file.stamp[0] > limits.max_bytes
    if not wide and not heavy and file.format in limits.formats:
        return ""
    light = f"-bytes{limits.max_bytes}" if heavy else ""
    return f"jpeg-q95-side{limits.max_side if wide else side}{light}"


def read_bytes(file: ImageFile) -> tuple[str, bytes]:
    """Read the media type and the bytes to send: the original ones, or those of the re-encoded image."""
    data = _content(file.path, file.path, file.stamp)
    if not file.transform:
        return MEDIA_TYPES[file.format], data
    return "image/jpeg", _reencode(file, data)


def read_original(path: str, digest: str) -> bytes:
    """Read the original bytes of an inspected image, for another machine."""
    try:
        with open(path, "rb") as handle:
            data = handle.read()
    except OSError as error:
        raise BadImage(f"{path}: {error.strerror or error}") from None
    check_content(path, data, digest)
    return data


def check_content(path: str, data: bytes, digest: str) -> None:
    """Check that bytes are those of the image that was inspected."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise BadImage(f"{path}: changed during the run")


def data_url(file: ImageFile) -> bytes:
    media, data = read_bytes(file)
    return b"data:%s;base64,%s" % (media.encode(), pybase64.b64encode(data))


def data_url_length(file: ImageFile) -> int:
    """Compute the length of the data URL of an image that needs no transform."""
    return len(f"data:{MEDIA_TYPES[file.format]};base64,") + 4 * -(-file.stamp[0] // 3)


def check_unchanged(file: ImageFile) -> None:
    try:
        info = os.stat(file.path)
    except OSError as error:
        raise BadImage(f"{file.path}: {error.strerror or error}") from None
    if _stamp(info) != file.stamp:
        raise BadImage(f"{file.path}: changed during the run")


def real_path(path: str) -> str:
    """Find the path of an image with its links resolved; those of its folder are resolved once."""
    return _real(path)[0]


def read_image(file: ImageFile) -> Image:
    """Read an image for a local model: first frame, upright, in RGB, transparency on white."""
    return _upright(file.path, "JPEG" if file.transform else file.format, read_bytes(file)[1])


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
    kind, width, height = _header(name, data)
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise BadImage(
            f"{name}: {width} x {height} pixels, more than {MAX_SIDE:,} a side or {MAX_PIXELS:,} in all"
        )
    return ImageFile(name, hashlib.sha256(data).hexdigest(), kind, width, height, stamp)


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


def open_image(source: str | Path | IO[bytes], formats: Sequence[str] | None = None) -> Image:
    """Open an image with Pillow, of which the plugin for HEIF is not a part.

    `formats`: the formats to try, by Pillow's names; None tries all that `MEDIA_TYPES` has.
    """
    from PIL import Image

    if formats is None:
        formats = [name for name in MEDIA_TYPES if name != HEIF]
    elif HEIF in formats:
        import pillow_heif

        pillow_heif.register_heif_opener()
    return Image.open(source, formats=tuple(formats))


def _header(name: str, data: bytes) -> tuple[str, int, int]:
    """Format, width and height; BadImage for content that is no image."""
    from PIL import Image

    kind = _recognized(data)
    if kind == HEIF and find_spec("pillow_heif") is None:
        raise BadImage(f"{name}: is a HEIC image; expected pip install 'sightline[heif]', or a JPEG of it")
    if kind not in ("", HEIF):
        raise BadImage(f"{name}: not an image in a known format, but {kind}; expected a JPEG or PNG of it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with open_image(io.BytesIO(data), [HEIF] if kind == HEIF else None) as image:
                # Phones write MPO: a JPEG with more images after the first.
                kind = "JPEG" if image.format == "MPO" else str(image.format)
                return kind, image.width, image.height
    except Image.DecompressionBombError:
        raise BadImage(f"{name}: more than {MAX_PIXELS:,} pixels") from None
    except Exception:  # Pillow's readers raise any exception for a damaged file
        raise BadImage(f"{name}: not an image in a known format ({', '.join(MEDIA_TYPES)})") from None


def _recognized(data: bytes) -> str:
    """The name of a format that Pillow does not read by itself; '' for any other content."""
    if data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS:
        return HEIF
    return next((name for start, name in UNREADABLE.items() if data.startswith(start)), "")


def _reencode(file: ImageFile, data: bytes) -> bytes:
    """A high-quality JPEG of the first frame, upright, within the limits that the transform names."""
    from PIL import Image

    side, _, most = file.transform.rpartition("side")[2].partition("-bytes")
    flat = _upright(file.path, file.format, data)
    longest = int(side)
    while True:
        flat.thumbnail((longest, longest), Image.Resampling.LANCZOS)
        out = io.BytesIO()
        flat.save(out, "JPEG", quality=95, subsampling=0)
        if not most or out.tell() <= int(most) or longest == 1:
            return out.getvalue()
        # The bytes grow with the square of the side; the factor makes one more round enough.
        longest = max(1, int(max(flat.size) * 0.95 * (int(most) / out.tell()) ** 0.5))


def _upright(path: str, form: str, data: bytes) -> Image:
    from PIL import Image, ImageOps

    try:
        with open_image(io.BytesIO(data), [form]) as image:
            upright = ImageOps.exif_transpose(image)
            if upright.mode == "RGB" and "transparency" not in upright.info:
                return upright
            upright = upright.convert("RGBA")
    except Exception as error:  # as in _header
        raise BadImage(f"{path}: cannot be decoded ({error})") from None
    flat = Image.new("RGB", upright.size, "white")
    flat.paste(upright, mask=upright.getchannel("A"))
    return flat
