"""Arguments that mean a run: its number or name in the store, or its results folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import ArgumentGroup
from sightline.errors import EnvironmentFailedError, UserError
from sightline.output import print_note

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

    A folder with results comes before a run of the same name; other folders and files do not count. Every
    word but a number is a folder if there is no store that could hold names.

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
    return has_store and is_run_name(word) and not _holds_results(Path(word))


def note_shadowed_runs(folders: Iterable[str], store: str) -> None:
    """Say of each results folder that is used although a run of the store has the same name.

    Args:
        folders: The results folders, as the user named them.
        store: The path or URL of the store, which need not exist.
    """
    from sightline.results.run_names import is_run_name

    alike = [word for word in folders if is_run_name(word) and _holds_results(Path(word))]
    if not alike or not ("://" in store or Path(store).exists()):
        return
    from sightline.maintenance.opening import unchanged_store

    try:
        with unchanged_store(store) as opened:
            names = opened.labels.names()
    except (UserError, EnvironmentFailedError) as error:  # the folders need no store
        print_note(f"results folder {', '.join(alike)}; runs of the same name are not known: {error}")
        return
    for word in alike:
        if word in names:
            print_note(
                f"{word}: the results folder is used, not run {names[word]} of the same name"
                f" (its number names the run)"
            )


def _holds_results(folder: Path) -> bool:
    from sightline.formats.run_metadata import METRICS
    from sightline.results.read_results import is_sweep

    return (folder / METRICS).is_file() or is_sweep(folder)
