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
    """Something that an annotator fills in.

    Attributes:
        name: The name in values, files and exports.
        kind: One choice, several choices, free text, or the choice of one of two responses (`pair`).
        label: The label on the page.
        help: A sentence below the label.
        required: Whether it must be filled in, if it is asked.
        options: The values of a choice.
        options_from: The part of the item that lists the values instead; items without it are not asked.
        unless: The part of the item with which it is not asked.
        when: Field -> the values with which this field is asked; always if it is empty.
        phases: The phases in which it is asked; all if it is empty.
        lines: The height of a text field.
        longest: The most characters of a text.
    """

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
        name: The name in `Item.texts` or `Item.images`.
        kind: Images, texts, options (a list with letters), or the existing items that are similar to this one
            and to what is filled in.
        label: The label on the page.
        highlight: Whether it is what the annotator judges.
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
    """What happens to annotators who fail gold items, whose values are known.

    Attributes:
        every: One gold item in this many items, on average.
        failures: The number of failed gold items at which the rule applies.
        action: Whether the owner sees a note, or the annotator is paused.
        qualify: The share of right answers that passes a qualification test.
    """

    every: int = 12
    failures: int = 4
    action: Literal["report", "pause"] = "report"
    qualify: float = 0.8


class Task(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The declaration of an annotation task: a TOML file in annotation/tasks, or the user's own.

    Attributes:
        name: The name on the command line.
        title: The title of the page.
        items: How items are made of the sources.
        fields: What is filled in.
        shows: What is shown, in this order.
        produces: What the judgements become.
        records: The kind of the records, if it produces records.
        question: The question of the verdicts, such as `correct`.
        decides: The fields that make an annotator's vote on an item: the value of one field, or whether all
            of several fields have an option of tone `yes`.
        annotators: How many annotators judge an item.
        labels: The fields that label an item, such as its domain: the agreement on each is reported.
        shared: The number of queries that the same annotators judge, while one judges each of the others; 0:
            all, by any annotators.
        sample: How many clusters, pairs or wrong answers a project samples by default; 0: all.
        needed: The votes of tone `yes` that accept an item; 0: the majority decides.
        ties: What happens to an item without a decision: it stays open, an adjudicator decides, or its
            annotators see what the others said, and judge it again. The owner can always decide. An item that
            needs votes, and lacks some, goes to its annotators again, too. In a task that decides nothing, an
            item with a label without a majority has no decision, unless ties stay open.
        mixed: Whether the order is random; otherwise that of the source.
        phases: The phases; one without a name if there are none.
        disjoint: Tasks on the same data whose annotators cannot take part.
        source: Section of the paper, for the docs.
        instruction: The short instruction beside the item.
        guidelines: The guidelines, as Markdown without HTML.
        consent: A text to which annotators consent first; '' if none.
        gold: The rule for gold items.
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
        """Look up a field.

        Args:
            name: The name of a field that the task has.

        Returns:
            The field.
        """
        return next(one for one in self.fields if one.name == name)

    def phase(self, name: str) -> Phase:
        """Look up a phase.

        Args:
            name: The name of a phase, or ''.

        Returns:
            The phase; a phase of work if the task has no such phase.
        """
        return next((one for one in self.phases if one.name == name), Phase(name))
