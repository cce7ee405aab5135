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
        name: The name, unique in the store.
        task: The declaration as it was when the project began.
        sources: What the items were made of, as the user named it.
        data: The data folder, in which the images are; '' if there are none.
        benchmark: The benchmark and setting of the sources; '' if unknown.
        seed: The seed of sample and order.
        annotators: How many annotators judge an item, unless the item says otherwise.
        pick: How the items were sampled.
        of: The number of items from which they were sampled.
        disjoint: Projects whose annotators cannot take part.
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
        number: The number in the project, from 1, in the order of the project.
        texts: Part -> its texts.
        images: Part -> its images.
        phase: The phase in which it is judged.
        cluster: The independent unit of confidence intervals.
        stratum: What the sample and the order are balanced over.
        group: Items of one group do not follow each other.
        targets: The keys of the answers that a verdict is about.
        variant: The variant of the probe.
        authors: Humans who made it; they do not judge it.
        annotators: How many annotators judge it; 0: as many as the project says.
        expected: The known values, of a gold, training or qualification item.
        proposal: Values that a model proposes, for the annotator to confirm or change.
        probability: The probability with which it was sampled.
        hidden: Facts for exports that no page of an annotator shows, such as the model.
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
        number: The number in the project, from 1.
        name: A name or a pseudonym, unique in the project.
        role: `rater`, or `adjudicator`, who judges only items without a decision.
        version: The version of the link; revoking raises it, and earlier links end.
        expires: When the link ends, in seconds since 1970.
        revoked: Whether the link is revoked.
        paused: Whether the annotator gets no more items.
        strata: The strata of the items that the annotator gets; all if it is empty.
        forgiven: Failed gold items that the owner has forgiven.
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
        number: The number in the log, in the order of the commits; 0 before it is stored.
        item: The number of the item; 0 if it is about none.
        annotator: The number of the annotator; OWNER if the owner settles an item.
        action: What the annotator did. An `undo` withdraws the annotator's entry on the item.
        form: The id of the form: one that is sent twice adds one entry.
        time: Seconds since 1970.
        values: The values of the fields.
        seconds: How long the annotator saw the item.
        reason: Why it was skipped or is broken.
        reconsidered: Whether it is a judgement again, made with those of the others in view.
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
