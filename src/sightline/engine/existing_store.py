"""Opens a store that is only read, as dry runs do: a store that does not exist is not created."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sightline.engine.store import Store


@contextmanager
def existing_or_empty_store(url: str) -> Iterator[Store]:
    """Open a store that is only read; a path without a store stays without one.

    Args:
        url: A path or a database URL.

    Yields:
        The store; an empty temporary one if there is none at the path.
    """
    with tempfile.TemporaryDirectory() as scratch:
        exists = "://" in url or Path(url).exists()
        store = Store.open(url if exists else f"{scratch}/none.db")
        try:
            yield store
        finally:
            store.close()
