"""The images that an index holds: their paths in the data folder, and their digests."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

from sqlalchemy import select

from sightline.engine import index_tables
from sightline.engine.store import Store
from sightline.outcome_index.images import ImageError
from sightline.outcome_index.types import IndexedImage
from sightline.types import Outcome

_DIGEST = re.compile("[0-9a-f]{64}")


class IndexedImages:
    """The images of one index. Several threads may use it."""

    def __init__(self, store: Store, run: int, index_id: int) -> None:
        self._store = store
        self._run = run
        self._id = index_id

    def path(self, digest: str) -> str:
        """Look up where an image is.

        Args:
            digest: The SHA-256 of the image, in hexadecimal.
        """
        path = self._path(bytes.fromhex(digest)) if _DIGEST.fullmatch(digest) else None
        if path is None:
            raise ImageError(
                f"run {self._run} has no such image", found=digest, expected="an image of its groups"
            )
        return os.fsdecode(path)

    def of(self, outcomes: Sequence[Outcome]) -> dict[str, IndexedImage]:
        shown = [outcome for outcome in outcomes if outcome.images]
        if not shown:
            return {}
        paths = {path for outcome in shown for path in outcome.images}
        digests = self._digests(paths)
        held = self._store.answers.images(sorted({outcome.key for outcome in shown}))
        sent = {digest for of_request in held.values() for digest in of_request}
        return {
            path: IndexedImage(path, found := digests.get(path, ""), is_sent=found in sent) for path in paths
        }

    def _path(self, digest: bytes) -> bytes | None:
        table = index_tables.images.c
        query = select(table.path).where(table.index_id == self._id, table.digest == digest)
        with self._store.database.core_read() as connection:
            path = connection.scalar(query)
        return None if path is None else bytes(path)

    def _digests(self, paths: Collection[str]) -> dict[str, str]:
        """Path in the data folder -> the SHA-256 of the file, where it is recorded."""
        table = index_tables.images.c
        encoded = [os.fsencode(path) for path in paths]
        query = select(table.path, table.digest).where(table.index_id == self._id, table.path.in_(encoded))
        with self._store.database.core_read() as connection:
            found = connection.execute(query).all()
        return {os.fsdecode(bytes(path)): bytes(digest).hex() for path, digest in found}
