"""The judgements of a project as records that name annotators, items and what they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from sightline.annotation.decisions import decide, settlers, vote
from sightline.annotation.state import State
from sightline.annotation.types import OWNER, Annotator, Entry, Item, Values
from sightline.scoring.majority import majority
from sightline.types import Verdict, VerdictName

OWNER_NAME = "owner"


class Judgement(Struct, frozen=True):
    """A judgement that stands: the item, who judged it in which role, and the entry."""

    item: Item
    name: str
    role: str
    entry: Entry


def judgements(state: State, annotators: Sequence[Annotator]) -> Iterator[Judgement]:
    """List the judgements that stand, without skips and undone ones."""
    known = {one.number: one for one in annotators}
    for number, item in state.items.items():
        for by, entry in sorted(state.of_item(number).items(), key=lambda one: one[1].number):
            if entry.action == "judge":
                one = known.get(by)
                name, role = (one.name, one.role) if one else (OWNER_NAME, OWNER_NAME)
                yield Judgement(item, name, role, entry)


def verdicts(state: State, annotators: Sequence[Annotator]) -> Iterator[Verdict]:
    """Turn judgements into verdicts; training items and tests are left out."""
    task = state.project.task
    for one in _that_count(state, annotators):
        decision = vote(task, one.entry.values)
        if decision is None or task.phase(one.item.phase).kind != "work":
            continue
        yield Verdict(
            targets=one.item.targets,
            question=task.question,
            scorer="human",
            judge=one.name,
            kind="human",
            verdict=_verdict_name(decision),
            raw=_remarks(state, one.entry.values),
            variant=one.item.variant,
            labels=_labels(state, one.entry.values),
            inclusion=None if state.project.pick == "all" else one.item.probability,
        )


def _that_count(state: State, annotators: Sequence[Annotator]) -> Iterator[Judgement]:
    """The judgements whose majority is the decision about each item."""
    settling = settlers(annotators)
    for item, group in groupby(judgements(state, annotators), key=lambda one: one.item):
        entries = list(group)
        decision = decide(state.project, item, state.of_item(item.number), settling)
        values = [cast for one in entries if (cast := vote(state.project.task, one.entry.values))]
        if decision.status == "settled" and majority(values) != decision.value:
            entries = [one for one in entries if one.entry.annotator in settling][-1:]
        yield from entries


def decided(state: State, annotators: Sequence[Annotator]) -> Mapping[int, str]:
    settling = settlers(annotators)
    found = {
        number: decide(state.project, item, state.of_item(number), settling)
        for number, item in state.items.items()
    }
    return {number: one.value for number, one in found.items() if one.value is not None}


def name_of(annotators: Sequence[Annotator], number: int) -> str:
    if number == OWNER:
        return OWNER_NAME
    return next((one.name for one in annotators if one.number == number), str(number))


def _verdict_name(value: str) -> VerdictName:
    names: dict[str, VerdictName] = {
        "right": "right",
        "wrong": "wrong",
        "undecided": "undecided",
        "refused": "refused",
        "miss": "miss",
    }
    return names[value]


def _labels(state: State, values: Values) -> tuple[str, ...]:
    """The values of the fields with several choices: the errors that the annotator names."""
    names = [field.name for field in state.project.task.fields if field.kind == "choices"]
    return tuple(value for name in names if not isinstance(one := values.get(name, ()), str) for value in one)


def _remarks(state: State, values: Values) -> str:
    names = [field.name for field in state.project.task.fields if field.kind == "text"]
    return "\n".join(one for name in names if isinstance(one := values.get(name, ""), str) and one)
