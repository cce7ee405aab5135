"""Arguments and the store of the subcommands of `annotate`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sightline.cli.options import ArgumentGroup, add_store

if TYPE_CHECKING:
    from sightline.annotation.state import State
    from sightline.annotation.store import AnnotationStore, ProjectRow
    from sightline.engine.store import Store


def add_project(group: ArgumentGroup) -> None:
    """Add the argument PROJECT, and --store."""
    group.add_argument("project", metavar="PROJECT", help="name or number of the project")
    add_store(group)


@contextmanager
def opened_project(word: str, url: str) -> Iterator[tuple[AnnotationStore, ProjectRow]]:
    from sightline.annotation.store import AnnotationStore
    from sightline.engine.store import Store

    store = Store.open(url, create=False)
    try:
        annotations = AnnotationStore(store, time.time)
        yield annotations, annotations.project(word)
    finally:
        store.close()


@contextmanager
def read_store(url: str) -> Iterator[Store]:
    """Open a store to read it, or an empty one in a temporary folder instead of one that does not exist."""
    from sightline.engine.database_errors import NoStoreError
    from sightline.engine.store import Store

    with TemporaryDirectory(prefix="sightline-") as scratch:
        try:
            store = Store.open(url, create=False)
        except NoStoreError:
            store = Store.open(str(Path(scratch) / "empty.db"))
        try:
            yield store
        finally:
            store.close()


def state_of(store: AnnotationStore, row: ProjectRow) -> State:
    from sightline.annotation.state import State

    return State(row.project, store.items(row.number)).advance(store.entries(row.number))
