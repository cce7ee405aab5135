"""What is seen of picture files: looked at once, remembered in the store until a file is another."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.engine.store import Store
from sightline.pictures import BadPicture, look
from sightline.types import Picture, PictureFile


def looked_at(
    pictures: Mapping[str, Picture], store: Store, *, records: bool
) -> dict[str, PictureFile | BadPicture]:
    """What is seen of pictures by their paths, or why one cannot be shown.

    `records` is whether what is new may be written to the store.
    """
    known = store.picture_files(list(pictures))
    found: dict[str, PictureFile | BadPicture] = {}
    for path, picture in pictures.items():
        try:
            found[path] = look(picture, known)
        except BadPicture as error:
            found[path] = error
    if records:
        new = (file for path, file in found.items() if file is not known.get(path))
        store.add_picture_files([file for file in new if isinstance(file, PictureFile)])
    return found
