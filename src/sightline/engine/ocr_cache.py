"""What is written in images: read once by each reader, remembered in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from sightline.engine.store import Store
from sightline.images import BadImage
from sightline.models.ocr import Reader, Word
from sightline.types import ImageFile

ImageVersion = tuple[str, str]
"""An image as it is shown: its digest, and its transform."""

OcrResult = tuple[Word, ...] | BadImage
"""The words in an image, or why it cannot be read."""

_Read = tuple[ImageFile, OcrResult]
Over = Callable[[Callable[[ImageFile], _Read], Sequence[ImageFile]], Iterable[_Read]]
"""How reading goes over the images: one after the other as `map` does, or in several processes."""

_decoder = msgspec.json.Decoder(tuple[Word, ...])


def read_images(
    images: Iterable[ImageFile], reader: Reader, store: Store, over: Over = map
) -> Iterator[tuple[ImageVersion, OcrResult]]:
    """The words in each image, those that are known first, then the others as they are read.

    Each reading is remembered as soon as it is made, so that an interruption loses the one in hand. An
    image that cannot be read costs no other one, and is tried again the next time. `over` may hand the
    reader to other processes, where that can be pickled.
    """
    distinct = {(image.digest, image.transform): image for image in images}
    known = _known(distinct, reader, store)
    yield from known.items()
    unread = [image for shown, image in distinct.items() if shown not in known]
    for image, words in over(partial(_read, reader), unread):
        shown = (image.digest, image.transform)
        if not isinstance(words, BadImage):
            store.add_readings({_key(reader, shown): msgspec.json.encode(words)})
        yield shown, words


def cached_words(
    images: Iterable[ImageFile], reader: Reader, store: Store
) -> dict[ImageVersion, tuple[Word, ...]]:
    """The words in those images that this reader has read before; nothing is read."""
    return _known([(image.digest, image.transform) for image in images], reader, store)


def _known(
    wanted: Iterable[ImageVersion], reader: Reader, store: Store
) -> dict[ImageVersion, tuple[Word, ...]]:
    keys = {shown: _key(reader, shown) for shown in wanted}
    bodies = store.readings(list(keys.values()))
    return {shown: _decoder.decode(bodies[key]) for shown, key in keys.items() if key in bodies}


def _read(reader: Reader, image: ImageFile) -> _Read:
    try:
        return image, reader.read(image)
    except BadImage as error:
        return image, error


def _key(reader: Reader, shown: ImageVersion) -> bytes:
    digest, transform = shown
    # The original bytes have no third line.
    named = "\n".join([reader.identity, digest, *([transform] if transform else [])])
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()
