"""The records of annotation projects: project, item, annotator, entry of the log; fields that are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field
from sqlalchemy import Connection

from sightline.annotation.task import RATER, Field, Task
from sightline.store.database import damage

Values = Mapping[str, str | tuple[str, ...]]
"""Name of a field -> its value, or its values if it holds several."""

Action = Literal["judge", "skip", "broken", "undo", "consent", "accept", "reject", "guidelines", "remark"]
"""What somebody did; `broken`: something is wrong with the item itself. `accept` and `reject` are the owner's
decision about an answer that rules cannot compare. `guidelines` is a new version of them by the owner, and
`remark` what an annotator tells the owner about an item."""

Pick = Literal["all", "random", "stratified"]

OWNER = 0
"""The number of the owner as an annotator: the owner settles items that have no decision."""


class Project(Struct, frozen=True, omit_defaults=True):
    """A task with its sources, unchanged after `annotate new`; `data` is '' without images.

    `options` are the effective options of the benchmark that humans answer.
    """

    name: str
    task: Task
    sources: tuple[str, ...] = ()
    data: str = ""
    benchmark: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
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
    """One item: what is shown, and what no page shows, such as the probability with which it was sampled."""

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
    """Somebody who takes part in a project; the link ends at `expires` (seconds since 1970).

    Attributes:
        labels: What the owner says about them, such as their region.
        most: How many items they judge at most; 0 for all.
        crowd: The name of the crowd link by which a worker came; '' for a personal link.
        code: What a worker shows the platform after the last item; '' in a crowd link if each has their own.
        code_shown: Whether the worker's page has shown it.
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
    labels: Mapping[str, str] = field(default_factory=dict)
    most: int = 0
    crowd: str = ""
    code: str = ""
    code_shown: bool = False


class Entry(Struct, frozen=True, omit_defaults=True):
    """One line of the append-only log; `item` is 0 if it is about none, `time` in seconds since 1970."""

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


# -- Decodes the bodies of annotation projects, items, annotators and entries in the store

T = TypeVar("T")

PROJECT = msgspec.json.Decoder(Project)
ITEM = msgspec.json.Decoder(Item)
ANNOTATOR = msgspec.json.Decoder(Annotator)
ENTRY = msgspec.json.Decoder(Entry)

DECODERS: Mapping[str, msgspec.json.Decoder[Any]] = {
    "annotation_projects": PROJECT,
    "annotation_items": ITEM,
    "annotators": ANNOTATOR,
    "annotation_log": ENTRY,
}
"""Table -> what decodes the bodies of its rows."""


def decode(
    connection: Connection, decoder: msgspec.json.Decoder[T], table: str, number: int, body: bytes
) -> T:
    try:
        return decoder.decode(body)
    except (ValueError, TypeError) as error:
        url = connection.engine.url
        is_file = connection.dialect.name == "sqlite"
        raise damage(str(url.database) if is_file else str(url), table, number, str(error)) from None


# -- Which fields are asked of an item, and which values they may have

Given = Mapping[str, Sequence[str]]
"""Name of a field -> what a form holds for it."""


def options_of(field: Field, item: Item) -> tuple[str, ...]:
    """List the values that a field of an item may have."""
    if field.options_from:
        return item.texts.get(field.options_from, ())
    return tuple(option.value for option in field.options)


def can_be_asked(field: Field, item: Item) -> bool:
    """Whether a field is asked of an item at all, whatever is filled in."""
    if field.phases and item.phase not in field.phases:
        return False
    return field.unless not in item.texts and (not field.options_from or field.options_from in item.texts)


def is_asked(field: Field, item: Item, given: Given) -> bool:
    """Whether a field is asked of an item, with what is filled in so far."""
    if not can_be_asked(field, item):
        return False
    return all(set(given.get(name, ())) & set(values) for name, values in field.when.items())


def as_given(values: Values) -> Given:
    """Turn values of the log into those of a form."""
    return {name: [value] if isinstance(value, str) else list(value) for name, value in values.items()}
