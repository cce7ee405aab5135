"""Images that look alike: two perceptual hashes of each, and which images are copies of which.

A hash is the 256-bit pHash of the library ImageHash, of the image in grey. One is of the whole image, one
of it without a border of one colour: the margins that comics are published with move all that stands inside
them. Two images are as far apart as the nearer of the two says.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from sightline.builders.image_io import open_upright
from sightline.builders.process_pool import spread
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.images import BadImage
from sightline.progress import progress
from sightline.types import ImageFile

if TYPE_CHECKING:
    from PIL.Image import Image

BITS = 256
DISTANCE = 48
"""Bits of BITS up to which two images are taken for one. Measured on II-Bench's 1,222 distinct images
(docs/building.md): up to 46 stand five pairs, each twice the same image, at 52 two that differ."""

_SIDE = 16
"""The lowest coefficients a side of which a hash holds the signs: BITS in all."""
_SMALL = 256
"""Pixels a side to which larger images are averaged first: what is left is quick to work on, and even."""
_BORDER = 24
"""Steps of 255 in a channel up to which a pixel has the border's colour: JPEG leaves no colour even."""
_FLAT = 8
"""Steps of 255 between the darkest and the lightest pixel up to which an image shows nothing."""
_BLOCK = 512


def image_hash() -> Any:
    """The module imagehash; UserError with the command that installs it where it is missing."""
    try:
        import imagehash
    except ImportError:
        raise UserError(
            "ImageHash is not installed, by which images that look alike are found",
            expected="pip install 'sightline[build]'",
        ) from None
    return imagehash


class NearDuplicate(Struct, frozen=True):
    """The image that another one looks like, and in how many of 256 bits they differ."""

    of: str
    distance: int


def hashes(
    files: Iterable[ImageFile], store: Store, *, processes: int = 1, show_progress: bool = False
) -> dict[str, bytes | BadImage]:
    """Two hashes of each image, of 32 bytes each, one behind the other, by its digest; or why it has none.

    Of an image that shows nothing they are empty: it is like no other. What the store holds is not computed
    again. UserError where ImageHash is missing, EnvironmentFailedError where the store fails or a process dies.
    """
    distinct = {file.digest: file for file in files}
    version = image_hash().__version__
    keys = {digest: _key(version, digest) for digest in distinct}
    known = store.vectors(list(keys.values()))
    found: dict[str, bytes | BadImage] = {d: known[key] for d, key in keys.items() if key in known}
    new = [file for digest, file in distinct.items() if digest not in found]
    with progress(
        "comparing images", len(distinct), "images", done=len(found), show_progress=show_progress
    ) as advance:
        for digest, one in spread(_hashed, new, processes):
            found[digest] = one
            if not isinstance(one, BadImage):
                store.add_vectors({keys[digest]: one})
            advance(1)
    return found


def copies(hashed: Mapping[str, bytes], distance: int = DISTANCE) -> dict[str, NearDuplicate]:
    """The images that are copies of another one, by name, with the nearest that is none itself.

    `hashed` are the hashes of each image, the ones to be kept first: each is a copy where it is within
    `distance` of one before it that is none. So nothing is lost by a chain of images of which each is like
    the next. Of equally near ones the first counts.
    """
    names = [name for name, one in hashed.items() if one]
    near: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for first, second, apart in _near([hashed[name] for name in names], distance):
        near[second].append((apart, first))
    found: dict[str, NearDuplicate] = {}
    for place, name in enumerate(names):
        kept = [(apart, other) for apart, other in near[place] if names[other] not in found]
        if kept:
            apart, other = min(kept)
            found[name] = NearDuplicate(names[other], apart)
    return found


def hash_of(image: Image) -> bytes:
    """The two hashes of an upright RGB image, 64 bytes; none where it shows nothing."""
    parts = [_phash(image), _phash(_without_border(image))]
    return b"".join(parts) if all(parts) else b""


def _hashed(file: ImageFile) -> tuple[str, bytes | BadImage]:
    try:
        return file.digest, hash_of(open_upright(file.path))
    except BadImage as error:
        return file.digest, error


def _key(version: str, digest: str) -> bytes:
    return hashlib.sha256(f"alike, ImageHash {version}\n{digest}".encode()).digest()


def _without_border(image: Image) -> Image:
    """The part of an image inside a border of one colour, the median of those at its edge."""
    from PIL import Image, ImageChops, ImageStat

    width, height = min(_SMALL, image.width), min(_SMALL, image.height)
    small = image.resize((width, height), Image.Resampling.BOX)
    edge = Image.new("L", small.size, 255)
    edge.paste(0, (1, 1, width - 1, height - 1))
    colour = tuple(ImageStat.Stat(small, edge).median)
    apart = ImageChops.difference(small, Image.new("RGB", small.size, colour))
    inside = apart.point(lambda step: 255 * (step > _BORDER)).getbbox()
    if inside is None:
        return image
    left, top, right, bottom = inside
    wide, high = image.width / width, image.height / height
    return image.crop((int(left * wide), int(top * high), round(right * wide), round(bottom * high)))


def _phash(image: Image) -> bytes:
    from PIL import Image

    grey = image.convert("L")
    grey.thumbnail((_SMALL, _SMALL), Image.Resampling.BOX)
    if np.ptp(np.asarray(grey)) <= _FLAT:
        return b""
    return np.packbits(image_hash().phash(grey, hash_size=_SIDE).hash).tobytes()


def _near(hashed: Sequence[bytes], distance: int) -> Iterable[tuple[int, int, int]]:
    """The pairs (first, second, bits in which they differ) that are within a distance, first < second."""
    if not hashed:
        return
    # Signs, so that a product of matrices counts the bits in which two of them agree, less the others.
    bits = np.unpackbits(np.frombuffer(b"".join(hashed), np.uint8).reshape(len(hashed), -1), axis=1)
    signs = bits.astype(np.float32) * 2 - 1
    parts = [np.ascontiguousarray(part) for part in np.split(signs, bits.shape[1] // BITS, axis=1)]
    for start in range(0, len(hashed), _BLOCK):
        apart = np.min([(BITS - part[start : start + _BLOCK] @ part.T) / 2 for part in parts], axis=0)
        for first, second in np.argwhere(apart <= distance):
            if start + first < second:
                yield int(start + first), int(second), int(apart[first, second])
