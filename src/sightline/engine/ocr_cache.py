"""OCR results: each image is read once by each OCR reader, and cached in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from sightline.engine.store import Store
from sightline.formats.digests import text_digest
from sightline.images import BadImage
from sightline.models.ocr import Reader, Word
from sightline.types import ImageFile

ImageVersion = tuple[str, str]
"""An image as a model receives it: its digest, and the transform applied to it."""

OcrResult = tuple[Word, ...] | BadImage
"""The words in an image, or why it cannot be read."""

_Read = tuple[ImageFile, OcrResult]
Mapper = Callable[[Callable[[ImageFile], _Read], Sequence[ImageFile]], Iterable[_Read]]
"""Applies a function to images: one after the other like `map`, or in several processes."""

_decoder = msgspec.json.Decoder(tuple[Word, ...])


def read_images(
    images: Iterable[ImageFile], reader: Reader, store: Store, mapper: Mapper = map
) -> Iterator[tuple[ImageVersion, OcrResult]]:
    """Read the words in images; cached results come first.

    Each result is stored as soon as it exists, so that an interruption loses only the image in work. An
    image that cannot be read does not affect others, and is tried again the next time.
    """
    distinct = {(image.digest, image.transform): image for image in images}
    cached = _cached(distinct, reader, store)
    yield from cached.items()
    unread = [image for version, image in distinct.items() if version not in cached]
    for image, words in mapper(partial(_read, reader), unread):
        version = (image.digest, image.transform)
        if not isinstance(words, BadImage):
            store.caches.readings.add({_key(reader, version): msgspec.json.encode(words)})
        yield version, words


def cached_words(
    images: Iterable[ImageFile], reader: Reader, store: Store
) -> dict[ImageVersion, tuple[Word, ...]]:
    """Look up OCR results; nothing is read."""
    return _cached([(image.digest, image.transform) for image in images], reader, store)


def _cached(
    versions: Iterable[ImageVersion], reader: Reader, store: Store
) -> dict[ImageVersion, tuple[Word, ...]]:
    keys = {version: _key(reader, version) for version in versions}
    bodies = store.caches.readings.look_up(list(keys.values()))
    found = {}
    for version, key in keys.items():
        # A damaged row is a missing row: the image is read again.
        with suppress(ValueError):
            if key in bodies:
                found[version] = _decoder.decode(bodies[key])
    return found


def _read(reader: Reader, image: ImageFile) -> _Read:
    try:
        return image, reader.read(image)
    except BadImage as error:
        return image, error


def _key(reader: Reader, version: ImageVersion) -> bytes:
    digest, transform = version
    named = "\n".join([reader.identity, digest, transform])
    return bytes.fromhex(text_digest(named))
