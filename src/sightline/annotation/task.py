"""The declaration of an annotation task: what is shown, what is filled in, what the judgements become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

ItemKind = Literal[
    "answers",
    "wrong-answers",
    "answer-pairs",
    "probes",
    "variant-pairs",
    "images",
    "captions",
    "table-lines",
    "drafts",
]
"""How items are made of the sources; see items.py."""

PartKind = Literal["image", "text", "options", "similar"]
FieldKind = Literal["choice", "choices", "text", "pair"]
Product = Literal["verdicts", "answers", "records", "judgements"]
Records = Literal["", "images", "captions", "table-lines", "questions", "codis", "iibench", "contextual"]
"""What is written of the judgements, if a task produces records; see records/__init__.py."""

Ties = Literal["open", "adjudicate", "consensus"]
PhaseKind = Literal["work", "training", "qualification"]

RATER = "rater"
ADJUDICATOR = "adjudicator"
"""The role whose judgements settle ties. They count for nothing else (CODIS, appendix A: the fifth human)."""


class Option(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value that a field may have: its label on the page, its key, and whether it accepts or rejects."""

    value: str
    label: str = ""
    key: str = ""
    tone: Literal["", "yes", "no"] = ""

    @property
    def text(self) -> str:
        """The label, or the value if it has none."""
        return self.label or self.value


class Field(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that an annotator fills in."""

    name: str
    kind: FieldKind
    label: str = ""
    help: str = ""
    required: bool = True
    options: tuple[Option, ...] = ()
    options_from: str = ""
    unless: str = ""
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    phases: tuple[str, ...] = ()
    lines: int = 1
    longest: int = 4000


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of an item that the page shows; an item that lacks it does not show it.

    Attributes:
        after: The field that must be filled in before the part is shown (II-Bench: answer first); '' if none.
    """

    name: str
    kind: PartKind
    label: str = ""
    highlight: bool = False
    after: str = ""


class Phase(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A phase: an annotator ends one before the next. Training shows the expected values afterwards."""

    name: str
    title: str = ""
    kind: PhaseKind = "work"
    help: str = ""


class GoldRule(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What happens to annotators who fail gold items, whose values are known."""

    every: int = 12
    failures: int = 4
    action: Literal["report", "pause"] = "report"
    qualify: float = 0.8


class Task(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The declaration of an annotation task: a TOML file in annotation/tasks, or the user's own.

    Attributes:
        phases: The phases; one without a name if there are none.
        source: Section of the paper, for the docs.
        consent: A text to which annotators consent first; '' if none.
    """

    name: str
    title: str
    items: ItemKind
    fields: tuple[Field, ...]
    shows: tuple[Part, ...] = ()
    produces: Product = "judgements"
    records: Records = ""
    question: str = ""
    decides: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    annotators: int = 3
    shared: int = 0
    sample: int = 0
    needed: int = 0
    ties: Ties = "open"
    mixed: bool = True
    phases: tuple[Phase, ...] = ()
    disjoint: tuple[str, ...] = ()
    source: str = ""
    instruction: str = ""
    guidelines: str = ""
    consent: str = ""
    gold: GoldRule = GoldRule()

    def field(self, name: str) -> Field:
        return next(one for one in self.fields if one.name == name)

    def phase(self, name: str) -> Phase:
        return next((one for one in self.phases if one.name == name), Phase(name))
