"""What is written in pictures: read once by each reader, remembered in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from sightline.engine.store import Store
from sightline.models.reader import Reader, Word
from sightline.pictures import BadPicture
from sightline.types import PictureFile

_decoder = msgspec.json.Decoder(tuple[Word, ...])


def readings_of(
    pictures: Sequence[PictureFile], reader: Reader, store: Store
) -> dict[tuple[str, str], tuple[Word, ...] | BadPicture]:
    """The words in each picture by its digest and transform, read where they are not known; or why it cannot
    be read.

    Each reading is remembered as soon as it is made, so that an interruption loses the one in hand. A
    picture that cannot be read costs no other one, and is tried again the next time.
    """
    distinct = {(picture.digest, picture.transform): picture for picture in pictures}
    keys = {shown: _key(reader, *shown) for shown in distinct}
    known = store.readings(list(keys.values()))
    found: dict[tuple[str, str], tuple[Word, ...] | BadPicture] = {}
    for shown, picture in distinct.items():
        body = known.get(keys[shown])
        if body is not None:
            found[shown] = _decoder.decode(body)
            continue
        try:
            words = reader.read(picture)
        except BadPicture as error:
            found[shown] = error
            continue
        store.add_readings({keys[shown]: msgspec.json.encode(words)})
        found[shown] = words
    return found


def _key(reader: Reader, digest: str, transform: str) -> bytes:
    # The original bytes have no third line.
    named = "\n".join([reader.identity, digest, *([transform] if transform else [])])
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()
