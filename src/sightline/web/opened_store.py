"""The store that is served: the user's, or a temporary one with the runs of results folders."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sightline.engine.database_errors import NoStoreError
from sightline.engine.store import Store
from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.results_folder import import_results


@contextmanager
def opened_store(url: str, folders: Sequence[Path], data: Sequence[Path]) -> Iterator[Store]:
    """Open what is served.

    Args:
        url: A path or a database URL.
        folders: Results folders; with any, their runs are served instead of those of the store.
        data: Data folders and groups files. With any, the store may be missing.

    Yields:
        The store.

    Raises:
        NoStoreError: There is no store, and neither folders nor data.
        UserError: A folder does not hold results.
    """
    with tempfile.TemporaryDirectory(prefix="sightline-") as scratch:
        temporary = str(Path(scratch, "results.db"))
        if folders:
            store = Store.open(temporary)
        else:
            try:
                store = Store.open(url, create=False)
            except NoStoreError:
                if not data:
                    raise
                store = Store.open(temporary)
        try:
            if folders:
                OutcomeIndex(store)  # Makes the tables of the index.
            for folder in folders:
                import_results(store, folder, data)
            yield store
        finally:
            store.close()
