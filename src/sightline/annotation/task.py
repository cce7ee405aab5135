"""The declaration of an annotation task: what is shown, filled in, and becomes of it; and how it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.errors import UserError, unknown_name
from sightline.formats.files import read_bytes
from sightline.text import decode_toml

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
"""How items are made of the sources; see `MAKERS` in creation.py."""

PartKind = Literal["image", "text", "options", "similar"]
FieldKind = Literal["choice", "choices", "text", "pair"]
Product = Literal["verdicts", "answers", "records", "judgements"]
Records = Literal[
    "", "images", "captions", "table-lines", "questions", "codis", "iibench", "contextual", "tasks"
]
"""What is written of the judgements, if a task produces records; see `WRITERS` in export.py."""

Ties = Literal["open", "adjudicate", "consensus"]
PhaseKind = Literal["work", "training", "qualification"]

RATER = "rater"
ADJUDICATOR = "adjudicator"
"""The role whose judgements settle ties. They count for nothing else (CODIS, appendix A: the fifth human)."""

CROWD = "crowd"
"""The role of a link that many workers share: each becomes a rater of their own, named by their id."""


class Option(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value that a field may have: its label on the page, its key, and whether it accepts or rejects."""

    value: str
    label: str = ""
    key: str = ""
    tone: Literal["", "yes", "no"] = ""

    @property
    def text(self) -> str:
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
    """A part of an item, shown after the field `after` is filled in ('' if none); items may lack it."""

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

    @property
    def label_fields(self) -> list[str]:
        """The fields whose values are labels of a verdict, such as errors."""
        return [one.name for one in self.fields if one.kind == "choices" or one.name in self.labels]

    def verdict_tone(self, option: Option) -> str:
        """The tone that gives an option its colour: only verdicts on answers have one."""
        is_verdict = option.value in ("right", "wrong") and self.question in ("", "correct")
        return option.tone if is_verdict else ""

    def phase(self, name: str) -> Phase:
        return next((one for one in self.phases if one.name == name), Phase(name))


def with_several_labels(declared: Task) -> Task:
    """The task with several values in each field of a label that takes one."""
    single = [one for one in declared.fields if one.name in declared.labels and one.kind == "choice"]
    if not single:
        raise UserError(f"--several: the task {declared.name} has no label with one value")
    fields = [
        replace(one, kind="choices", help="Several may apply.") if one in single else one
        for one in declared.fields
    ]
    return replace(declared, fields=tuple(fields))


# -- Reads declarations of annotation tasks: built-in ones, those of packages, and the user's TOML files

GROUP = "sightline.annotation_tasks"
"""The group of entry points; each is the text of a TOML file, or a function that returns it."""

_KEYS_OF_THE_PAGE = "bnsuz?"
_CHOICES = ("choice", "choices", "pair")
_VERDICTS = ("right", "wrong", "undecided", "refused", "miss")


def task(name: str) -> Task:
    if name.endswith(".toml"):
        path = Path(name)
        return read_task(read_bytes(path), name)
    if name in _built_in():
        return read_task(_built_in()[name], f"task {name}")
    for entry in _registered():
        if entry.name == name:
            text = entry.load()
            return read_task(text() if callable(text) else text, f"task {name} of {entry.module}")
    raise unknown_name("task", name, task_names())


def task_names() -> list[str]:
    """List the tasks that are built in or that installed packages register."""
    return sorted({*_built_in(), *(entry.name for entry in _registered())})


def read_task(text: str | bytes, place: str) -> Task:
    declared = decode_toml(text, Task, place, "the declaration of a task")
    for fault in _faults(declared):
        raise UserError(fault, file=place, expected="a declaration as in docs/annotation-tasks.md")
    return declared


def _faults(declared: Task) -> Iterator[str]:
    """What contradicts itself in a declaration."""
    fields = [one.name for one in declared.fields]
    parts = [one.name for one in declared.shows]
    phases = [one.name for one in declared.phases]
    for what, names in (("fields", fields), ("shows", parts), ("phases", phases)):
        if twice := next((name for name in names if names.count(name) > 1), None):
            yield f"{what} holds '{twice}' twice"
    if not fields:
        yield "fields is empty"
    for one in declared.fields:
        yield from _field_faults(one, fields, phases)
    for name in (*declared.decides, *declared.labels, *(part.after for part in declared.shows if part.after)):
        if name not in fields:
            yield f"'{name}' is not a field"
    if (declared.produces == "records") != bool(declared.records):
        yield "produces records needs records, and the other way round"
    if declared.produces == "verdicts":
        yield from _verdict_faults(declared)
    if declared.annotators < 1 or declared.needed > declared.annotators:
        yield "annotators must be at least 1 and at least needed"


def _field_faults(one: Field, fields: Sequence[str], phases: Sequence[str]) -> Iterator[str]:
    if one.kind in _CHOICES and not one.options and not one.options_from:
        yield f"field {one.name} of kind {one.kind} has no options"
    keys = [option.key for option in one.options if option.key]
    if len(keys) != len(set(keys)):
        yield f"two options of field {one.name} have one key"
    if reserved := [key for key in keys if key in _KEYS_OF_THE_PAGE]:
        yield f"field {one.name} takes the key {reserved[0]}, which the page needs ({_KEYS_OF_THE_PAGE})"
    for name, unknown in (
        *((name, name not in fields) for name in one.when),
        *((name, name not in phases) for name in one.phases),
    ):
        if unknown:
            yield f"field {one.name} names '{name}', which is not declared"


def _verdict_faults(declared: Task) -> Iterator[str]:
    if not declared.question:
        yield "question is empty, which the verdicts need"
    if len(declared.decides) != 1:
        yield "decides must name the field that holds the verdict"
    elif declared.decides[0] in {one.name for one in declared.fields}:
        for option in declared.field(declared.decides[0]).options:
            if option.value not in _VERDICTS:
                yield f"the option '{option.value}' is no verdict ({', '.join(_VERDICTS)})"


@cache
def _built_in() -> dict[str, str]:
    folder = files(__package__) / "tasks"
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    }


@cache
def _registered() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))
