"""Near-duplicate images: two perceptual hashes of each image, and which images are copies of which.

A hash is the 256-bit pHash of the library ImageHash, of the grey image. One hash is of the whole image, the
other of the image without a border of one colour: margins, as comics are published with, move everything
inside them. The distance of two images is the smaller of the two distances.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from sightline.builders.run import map_in_processes
from sightline.errors import needs_extra
from sightline.formats.files import text_digest
from sightline.images import BadImage, read_image
from sightline.progress import progress
from sightline.store.store import Store
from sightline.types import ImageFile

if TYPE_CHECKING:
    from PIL.Image import Image

BITS = 256
DISTANCE = 48
"""Largest number of different bits of near-duplicates. Measured on II-Bench's 1,222 distinct images
(docs/building.md): five pairs are within 46 bits, each twice the same image; the first different pair is at
52."""

_SIDE = 16
"""A hash holds the signs of the _SIDE x _SIDE lowest coefficients: BITS in all."""
_SMALL = 256
"""Larger images are averaged down to this number of pixels a side first, which is fast and removes noise."""
_BORDER = 24
"""Largest difference of a channel (0-255) from the border's colour; JPEG keeps no colour exactly."""
_FLAT = 8
"""An image without content: largest difference between its darkest and lightest pixel (0-255)."""
_BLOCK = 512
"""Images that are compared with all others at once."""


class NearDuplicate(Struct, frozen=True):
    """The image that another one looks like, and in how many of 256 bits they differ."""

    of: str
    distance: int


def import_imagehash() -> Any:
    with needs_extra("build", "ImageHash is not installed, which finds near-duplicates"):
        import imagehash
    return imagehash


def image_hashes(
    files: Iterable[ImageFile], store: Store, *, processes: int = 1, show_progress: bool = False
) -> dict[str, bytes | BadImage]:
    """Hash images; the store caches the hashes.

    Returns digest -> two hashes of 32 bytes each, one behind the other; empty for an image without content,
    which is like no other; or why the image has no hash.
    """
    distinct = {file.digest: file for file in files}
    version = import_imagehash().__version__
    keys = {digest: _key(version, digest) for digest in distinct}
    cached = store.caches.vectors.look_up(list(keys.values()))
    hashes: dict[str, bytes | BadImage] = {d: cached[key] for d, key in keys.items() if key in cached}
    new = [file for digest, file in distinct.items() if digest not in hashes]
    with progress(
        "comparing images",
        len(distinct),
        "images",
        done=len(hashes),
        show_progress=show_progress,
    ) as advance:
        for digest, hashed in map_in_processes(_hash_file, new, processes):
            hashes[digest] = hashed
            if not isinstance(hashed, BadImage):
                store.caches.vectors.add({keys[digest]: hashed})
            advance(1)
    return hashes


def find_duplicates(hashes: Mapping[str, bytes], distance: int = DISTANCE) -> dict[str, NearDuplicate]:
    """Find the images that are near-duplicates of an image before them.

    An image is a duplicate only of one that is not a duplicate itself, so that a chain of images, each like
    the next, does not collapse into one.
    """
    names = [name for name, hashed in hashes.items() if hashed]
    close: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for first, second, bits in _close_pairs([hashes[name] for name in names], distance):
        close[second].append((bits, first))
    duplicates: dict[str, NearDuplicate] = {}
    for index, name in enumerate(names):
        kept = [(bits, other) for bits, other in close[index] if names[other] not in duplicates]
        if kept:
            bits, other = min(kept)
            duplicates[name] = NearDuplicate(names[other], bits)
    return duplicates


def hash_image(image: Image) -> bytes:
    """Two hashes of an image, 64 bytes; empty for one without content."""
    parts = [_phash(image), _phash(_without_border(image))]
    return b"".join(parts) if all(parts) else b""


def _hash_file(file: ImageFile) -> tuple[str, bytes | BadImage]:
    try:
        return file.digest, hash_image(read_image(file))
    except BadImage as error:
        return file.digest, error


def _key(version: str, digest: str) -> bytes:
    # The text is part of the keys of stored hashes: another one would compute every hash again.
    return bytes.fromhex(text_digest(f"alike, ImageHash {version}\n{digest}"))


def _without_border(image: Image) -> Image:
    """Crop a border of one colour, the median colour at the edge."""
    from PIL import Image, ImageChops, ImageStat

    width, height = min(_SMALL, image.width), min(_SMALL, image.height)
    small = image.resize((width, height), Image.Resampling.BOX)
    edge = Image.new("L", small.size, 255)
    edge.paste(0, (1, 1, width - 1, height - 1))
    colour = tuple(ImageStat.Stat(small, edge).median)
    difference = ImageChops.difference(small, Image.new("RGB", small.size, colour))
    inside = difference.point(lambda step: 255 * (step > _BORDER)).getbbox()
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
    return np.packbits(import_imagehash().phash(grey, hash_size=_SIDE).hash).tobytes()


def _close_pairs(hashes: Sequence[bytes], distance: int) -> Iterable[tuple[int, int, int]]:
    """Pairs (first, second, number of different bits) within a distance, with first < second."""
    if not hashes:
        return
    # With signs, a matrix product gives the number of equal bits minus the number of different bits.
    bits = np.unpackbits(np.frombuffer(b"".join(hashes), np.uint8).reshape(len(hashes), -1), axis=1)
    signs = bits.astype(np.float32) * 2 - 1
    parts = [np.ascontiguousarray(part) for part in np.split(signs, bits.shape[1] // BITS, axis=1)]
    for start in range(0, len(hashes), _BLOCK):
        distances = np.min([(BITS - part[start : start + _BLOCK] @ part.T) / 2 for part in parts], axis=0)
        for first, second in np.argwhere(distances <= distance):
            if start + first < second:
                yield int(start + first), int(second), int(distances[first, second])
