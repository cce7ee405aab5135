"""Words of the command line that mean a run: its number or name in the store, or its results folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import ArgumentGroup

if TYPE_CHECKING:
    from sightline.engine.store import Store


def add_run(group: ArgumentGroup) -> None:
    """Add the argument RUN of the subcommands of `runs`.

    Args:
        group: The parser that receives it.
    """
    group.add_argument("run", metavar="RUN", help="number or name of the run")


@contextmanager
def opened_run(word: str, store: str) -> Iterator[tuple[Store, int]]:
    """Open the store of a run.

    Args:
        word: The number or name of the run.
        store: The path or URL of the store.

    Yields:
        The store, and the number of the run.

    Raises:
        UserError: There is no such store, or no such run.
    """
    from sightline.engine.store import Store
    from sightline.results.run_names import find_run
    from sightline.results.stored_run import read_stored_run

    opened = Store.open(store, create=False)
    try:
        yield opened, read_stored_run(opened, find_run(opened, word)).number
    finally:
        opened.close()


def is_stored(word: str, store: str) -> bool:
    """Whether a word means a run of the store and not a results folder.

    A path that exists is a folder, even if a run has the same name. So is every word if there is no store
    that could hold names.

    Args:
        word: The word.
        store: The path or URL of the store.

    Returns:
        Whether the word is a number, or the possible name of a run.
    """
    if word.isdecimal():
        return True
    from sightline.results.run_names import is_run_name

    has_store = "://" in store or Path(store).exists()
    return has_store and is_run_name(word) and not Path(word).exists()
