"""The records of annotation projects: project, item, annotator, and the entry of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from sightline.annotation.task import RATER, Task

Values = Mapping[str, str | tuple[str, ...]]
"""Name of a field -> its value, or its values if it holds several."""

Action = Literal["judge", "skip", "broken", "undo", "consent"]
"""What an annotator did; `broken`: something is wrong with the item itself."""

Pick = Literal["all", "random", "stratified"]

OWNER = 0
"""The number of the owner as an annotator: the owner settles items that have no decision."""


class Project(Struct, frozen=True, omit_defaults=True):
    """A task with its sources. It does not change after `annotate new`.

    Attributes:
        data: The data folder, in which the images are; '' if there are none.
    """

    name: str
    task: Task
    sources: tuple[str, ...] = ()
    data: str = ""
    benchmark: str = ""
    seed: int = 0
    annotators: int = 3
    pick: Pick = "all"
    of: int = 0
    disjoint: tuple[str, ...] = ()


class ItemImage(Struct, frozen=True):
    """An image of an item: the path in the data folder, and the SHA-256 of the file."""

    path: str
    digest: str


class Item(Struct, frozen=True, omit_defaults=True):
    """One item of a project: what is shown, and what no page shows.

    Attributes:
        probability: The probability with which it was sampled.
    """

    number: int
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    images: Mapping[str, tuple[ItemImage, ...]] = field(default_factory=dict)
    phase: str = ""
    cluster: str = ""
    stratum: str = ""
    group: str = ""
    targets: tuple[str, ...] = ()
    variant: str = ""
    authors: tuple[str, ...] = ()
    annotators: int = 0
    expected: Values = field(default_factory=dict)
    proposal: Values = field(default_factory=dict)
    probability: float = 1.0
    hidden: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key in tables, such as `item-0007`: a spreadsheet takes it neither for a number nor a date."""
        return f"item-{self.number:04d}"


class Annotator(Struct, frozen=True, omit_defaults=True):
    """Somebody who takes part in a project.

    Attributes:
        expires: When the link ends, in seconds since 1970.
    """

    number: int
    name: str
    role: str = RATER
    version: int = 1
    expires: float = 0.0
    revoked: bool = False
    paused: bool = False
    strata: tuple[str, ...] = ()
    forgiven: int = 0


class Entry(Struct, frozen=True, omit_defaults=True):
    """One line of the append-only log of a project.

    Attributes:
        item: The number of the item; 0 if it is about none.
        time: Seconds since 1970.
    """

    number: int
    item: int
    annotator: int
    action: Action
    form: str
    time: float
    values: Values = field(default_factory=dict)
    seconds: float = 0.0
    reason: str = ""
    reconsidered: bool = False


class Lease(Struct, frozen=True):
    """An item that is in an annotator's hands until a time (seconds since 1970)."""

    item: int
    annotator: int
    until: float
