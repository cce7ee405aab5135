"""Arguments that mean a run: its number or name in the store, or its results folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import ArgumentGroup
from sightline.errors import EnvironmentFailedError, UserError
from sightline.output import print_note

if TYPE_CHECKING:
    from sightline.engine.store import Store


def add_run(group: ArgumentGroup) -> None:
    """Add the argument RUN of the subcommands of `runs`."""
    group.add_argument("run", metavar="RUN", help="number or name of the run")


@contextmanager
def opened_run(word: str, store: str) -> Iterator[tuple[Store, int]]:
    from sightline.engine.store import Store
    from sightline.results.run_names import find_run
    from sightline.results.stored_run import read_stored_run

    opened = Store.open(store, create=False)
    try:
        yield opened, read_stored_run(opened, find_run(opened, word)).number
    finally:
        opened.close()


def note_shadowed_runs(folders: Iterable[str], store: str) -> None:
    """Say of each results folder that is used although a run of the store has the same name."""
    from sightline.results.run_names import is_run_name
    from sightline.results.run_source import holds_results

    alike = [word for word in folders if is_run_name(word) and holds_results(Path(word))]
    if not alike or not ("://" in store or Path(store).exists()):
        return
    from sightline.engine.store import Store

    try:
        with closing(Store.open(store, create=False)) as opened:
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
