"""The store that is shown: the user's, or a temporary one with the runs of results folders and files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sightline.engine.database_errors import NoStoreError
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.whole_results import METRICS
from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.results_folder import import_results
from sightline.outcome_index.scored_file import AnswerTask, scored_folders


@contextmanager
def opened_store(
    url: str, paths: Sequence[Path], data: Sequence[Path], task: AnswerTask | None = None
) -> Iterator[Store]:
    """Open what is shown.

    Args:
        task: What the files answer; None if there are none.
    """
    with tempfile.TemporaryDirectory(prefix="sightline-") as scratch:
        temporary = str(Path(scratch, "results.db"))
        if paths:
            store = Store.open(temporary)
        else:
            try:
                store = Store.open(url, create=False)
            except NoStoreError:
                if not data:
                    raise
                store = Store.open(temporary)
        try:
            if paths:
                OutcomeIndex(store)  # Makes the tables of the index.
            for nth, path in enumerate(paths):
                for folder in _folders(path, task, data, Path(scratch, str(nth))):
                    import_results(store, folder, data, source=path if path.is_file() else folder)
            yield store
        finally:
            store.close()


def _folders(path: Path, task: AnswerTask | None, data: Sequence[Path], scratch: Path) -> Sequence[Path]:
    """The results folder at a path, those in a folder, or those of the models in a file."""
    if not path.is_file():
        nested = [file.parent for pattern in ("*", "*/*") for file in path.glob(f"{pattern}/{METRICS}")]
        return [path] if (path / METRICS).is_file() else sorted(nested) or [path]
    if task is None:
        raise UserError(
            "is a file: it does not say which questions it answers",
            file=path,
            expected="--task BENCHMARK:SETTING (see `sightline list`), and --data DIR; or a results folder",
        )
    return scored_folders(path, task, data[0] if data else None, scratch)
