"""Opens a store that is only read, as dry runs do: a store that does not exist is not created."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from sightline.engine.database_errors import NoStoreError
from sightline.engine.store import Store


@contextmanager
def existing_or_empty_store(url: str) -> Iterator[Store]:
    """Open a store that is only read; where there is none, none is created.

    Yields:
        The store; an empty temporary one if there is none.
    """
    with tempfile.TemporaryDirectory() as scratch:
        try:
            store = Store.open(url, create=False)
        except NoStoreError:
            store = Store.open(f"{scratch}/none.db")
        try:
            yield store
        finally:
            store.close()
