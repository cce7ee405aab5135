"""What a maker of items gets: the sources that the user named, and the options of `annotate new`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from sightline.annotation.task import Task
from sightline.annotation.types import Item
from sightline.engine.store import Store
from sightline.errors import UserError


class SourceRequest(Struct, frozen=True):
    """The sources of a new project.

    Attributes:
        task: The task.
        sources: What the user named.
        store: The store, which may hold the named runs and projects.
        data: The data folder; None if the user named none.
        split: The split of a benchmark; '' for its first one.
        options: Options of the benchmark.
        by: The label that is the stratum of an item; '' for none.
        count: How many clusters, pairs or wrong answers are sampled; None as the task says.
        seed: The seed of random choices.
    """

    task: Task
    sources: tuple[str, ...]
    store: Store
    data: Path | None = None
    split: str = ""
    options: Mapping[str, Any] = {}
    by: str = ""
    count: int | None = None
    seed: int = 0

    def folder(self, why: str) -> Path:
        """The data folder.

        Args:
            why: What needs it.

        Returns:
            The folder.

        Raises:
            UserError: The user named none.
        """
        if self.data is None:
            raise UserError(f"a data folder is needed for {why}", expected="--data DIR, or SIGHTLINE_DATA")
        return self.data


class MadeItems(Struct, frozen=True):
    """What a maker made.

    Attributes:
        items: The items.
        benchmark: The benchmark and setting that they are of; '' if unknown.
        notes: Notes for the user.
        data: The folder of the images; '' without images.
        sampled: Whether the items are a sample already.
    """

    items: list[Item]
    benchmark: str = ""
    notes: list[str] = []
    data: str = ""
    sampled: bool = False
