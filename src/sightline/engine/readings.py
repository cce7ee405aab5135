"""What is written in pictures: read once by each reader, remembered in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from sightline.engine.store import Store
from sightline.models.reader import Reader, Word
from sightline.pictures import BadPicture
from sightline.types import PictureFile

Shown = tuple[str, str]
"""A picture as it is shown: its digest, and its transform."""

Reading = tuple[Word, ...] | BadPicture
"""The words in a picture, or why it cannot be read."""

_Read = tuple[PictureFile, Reading]
Over = Callable[[Callable[[PictureFile], _Read], Sequence[PictureFile]], Iterable[_Read]]
"""How reading goes over the pictures: one after the other as `map` does, or in several processes."""

_decoder = msgspec.json.Decoder(tuple[Word, ...])


def readings(
    pictures: Iterable[PictureFile], reader: Reader, store: Store, over: Over = map
) -> Iterator[tuple[Shown, Reading]]:
    """The words in each picture, those that are known first, then the others as they are read.

    Each reading is remembered as soon as it is made, so that an interruption loses the one in hand. A
    picture that cannot be read costs no other one, and is tried again the next time. `over` may hand the
    reader to other processes, where that can be pickled.
    """
    distinct = {(picture.digest, picture.transform): picture for picture in pictures}
    known = _known(distinct, reader, store)
    yield from known.items()
    unread = [picture for shown, picture in distinct.items() if shown not in known]
    for picture, words in over(partial(_read, reader), unread):
        shown = (picture.digest, picture.transform)
        if not isinstance(words, BadPicture):
            store.add_readings({_key(reader, shown): msgspec.json.encode(words)})
        yield shown, words


def known_readings(
    pictures: Iterable[PictureFile], reader: Reader, store: Store
) -> dict[Shown, tuple[Word, ...]]:
    """The words in those pictures that this reader has read before; nothing is read."""
    return _known([(picture.digest, picture.transform) for picture in pictures], reader, store)


def _known(wanted: Iterable[Shown], reader: Reader, store: Store) -> dict[Shown, tuple[Word, ...]]:
    keys = {shown: _key(reader, shown) for shown in wanted}
    bodies = store.readings(list(keys.values()))
    return {shown: _decoder.decode(bodies[key]) for shown, key in keys.items() if key in bodies}


def _read(reader: Reader, picture: PictureFile) -> _Read:
    try:
        return picture, reader.read(picture)
    except BadPicture as error:
        return picture, error


def _key(reader: Reader, shown: Shown) -> bytes:
    digest, transform = shown
    # The original bytes have no third line.
    named = "\n".join([reader.identity, digest, *([transform] if transform else [])])
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()
