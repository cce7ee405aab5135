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
) -> dict[str, tuple[Word, ...] | BadPicture]:
    """The words in each picture by its digest, read where they are not known; or why it cannot be read.

    Each reading is remembered as soon as it is made, so that an interruption loses the one in hand. A
    picture that cannot be read costs no other one, and is tried again the next time.
    """
    distinct = {picture.digest: picture for picture in pictures}
    keys = {digest: _key(reader, digest) for digest in distinct}
    known = store.readings(list(keys.values()))
    found: dict[str, tuple[Word, ...] | BadPicture] = {}
    for digest, picture in distinct.items():
        body = known.get(keys[digest])
        if body is not None:
            found[digest] = _decoder.decode(body)
            continue
        try:
            words = reader.read(picture)
        except BadPicture as error:
            found[digest] = error
            continue
        store.add_readings({keys[digest]: msgspec.json.encode(words)})
        found[digest] = words
    return found


def _key(reader: Reader, digest: str) -> bytes:
    return hashlib.sha256(f"{reader.identity}\n{digest}".encode("utf-8", "surrogatepass")).digest()
