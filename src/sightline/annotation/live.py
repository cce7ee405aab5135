"""A project that is being worked on: its state, the work on its items, and checks of what is filled in."""

from __future__ import annotations

import math
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.assignment import choose, is_free, is_test_over, result_of_test
from sightline.annotation.decisions import is_reconsidered
from sightline.annotation.iibench_records import CHECKS
from sightline.annotation.state import GUIDELINES, RESPONSE, State
from sightline.annotation.store import AnnotationStore, ProjectRow, Transaction
from sightline.annotation.task import Field, Task
from sightline.annotation.types import (
    OWNER,
    Action,
    Annotator,
    Entry,
    Given,
    Item,
    Lease,
    Values,
    as_given,
    is_asked,
    options_of,
)
from sightline.errors import UserError
from sightline.formats.files import text_digest
from sightline.store.database import repeat_if_lost

ITEM_LEASE_SECONDS = 30 * 60.0
"""How long an item stays in an annotator's hands after the last view of its page."""

LONGEST_REASON = 1000
LONGEST_GUIDELINES = 50_000


class NotYourItemError(UserError):
    """An annotator sent a form about an item that is not theirs."""


class Form(Struct, frozen=True):
    """What a form about an item holds."""

    id: str
    item: int
    action: Action
    given: Given
    seconds: float = 0.0
    reason: str = ""


class LiveProject:
    """An open project in this process; threads may share it. The clock returns seconds since 1970."""

    def __init__(self, store: AnnotationStore, row: ProjectRow, clock: Callable[[], float]) -> None:
        self.row = row
        self.state = State(row.project, store.items(row.number))
        self._store = store
        self._clock = clock
        self._lock = Lock()

    def refresh(self) -> State:
        """Apply the entries that other threads and processes have added."""
        with self._lock:
            self.state = self.state.advance(self._store.entries(self.row.number, self.state.last))
            return self.state

    def annotators(self) -> Sequence[Annotator]:
        return self._store.annotators(self.row.number)

    @repeat_if_lost
    def next_item(self, annotator: Annotator) -> Item | None:
        """Give the next item, or the one in hand, for ITEM_LEASE_SECONDS; None if there is none now."""
        with self._lock, self._store.transaction(self.row.number) as transaction:
            now, annotators = self._clock(), transaction.annotators()
            self._advance(transaction)
            current = next(one for one in annotators if one.number == annotator.number)
            item = choose(self.state, annotators, current, transaction.leases(now), now)
            if item is not None:
                transaction.lease(Lease(item.number, annotator.number, now + ITEM_LEASE_SECONDS))
            return item

    @repeat_if_lost
    def own_item(self, annotator: Annotator, number: int) -> Item:
        """Look up an item that an annotator has judged or has in hand; that lease begins again."""
        with self._lock, self._store.transaction(self.row.number) as transaction:
            self._advance(transaction)
            now = self._clock()
            mine = [lease.item for lease in transaction.leases(now) if lease.annotator == annotator.number]
            if number in mine:
                transaction.lease(Lease(number, annotator.number, now + ITEM_LEASE_SECONDS))
            elif number not in self.state.of_annotator(annotator.number):
                raise NotYourItemError("this item is not in your hands", expected="the next item")
            return self.state.items[number]

    @repeat_if_lost
    def submit(self, annotator: Annotator, form: Form) -> Entry:
        """Add what an annotator did. It is committed at the return.

        A form that was sent before adds nothing. An undo gives the item back into the annotator's hands,
        unless it was skipped and others took it.
        """
        with self._lock, self._store.transaction(self.row.number) as transaction:
            self._advance(transaction)
            now = self._clock()
            entry = self._entry(annotator, form, transaction.annotators(), now)
            known = transaction.find(form.id)
            if known is not None:
                if known.annotator != annotator.number or known.item != form.item:
                    raise NotYourItemError("this form is another annotator's")
                return known
            self._require_item(annotator, form, transaction, now)
            gives_back = form.action == "undo" and self._may_judge(annotator, form.item, transaction, now)
            added = transaction.append(entry)
            if gives_back:
                transaction.lease(Lease(form.item, annotator.number, now + ITEM_LEASE_SECONDS))
            return added

    def settle(self, item: int, given: Given, form: str) -> Entry:
        values = checked_values(self.row.project.task, self.state.items[item], given)
        entry = Entry(0, item, OWNER, "judge", _form_id(form), self._clock(), values)
        return self._store.append(self.row.number, [entry])[0]

    def compare(self, item: int, response: str, *, accepts: bool, form: str) -> Entry:
        """Add the owner's decision about an answer to an item with known values."""
        action: Action = "accept" if accepts else "reject"
        entry = Entry(0, item, OWNER, action, _form_id(form), self._clock(), {RESPONSE: response})
        return self._store.append(self.row.number, [entry])[0]

    def change_guidelines(self, text: str) -> None:
        """Add a version of the guidelines, unless it is the newest one."""
        if not text.strip() or len(text) > LONGEST_GUIDELINES:
            raise UserError(
                "is empty or too long", field=GUIDELINES, expected=f"1 to {LONGEST_GUIDELINES:,} characters"
            )
        if text.strip() != self.refresh().guidelines.strip():
            form = f"guidelines-{secrets.token_urlsafe(18)}"
            entry = Entry(0, 0, OWNER, "guidelines", form, self._clock(), {GUIDELINES: text})
            self._store.append(self.row.number, [entry])

    def remark(self, annotator: Annotator, number: int, text: str, form: str) -> None:
        """Add what an annotator tells the owner about an item in hand or judged."""
        if not text.strip():
            raise UserError("is empty", field="Remark", expected="what the owner should know")
        item, reason = self.own_item(annotator, number), text.strip()[:LONGEST_REASON]
        # A page can send several remarks.
        form = f"{_form_id(form)}-remark-{text_digest(reason)[:16]}"
        entry = Entry(0, item.number, annotator.number, "remark", form, self._clock(), reason=reason)
        self._store.append(self.row.number, [entry])

    def consent(self, annotator: Annotator, form: str) -> None:
        entry = Entry(0, 0, annotator.number, "consent", _form_id(form), self._clock())
        self._store.append(self.row.number, [entry])

    def _advance(self, transaction: Transaction) -> None:
        self.state = self.state.advance(transaction.entries(self.state.last))

    def _entry(self, annotator: Annotator, form: Form, annotators: Sequence[Annotator], now: float) -> Entry:
        item = self.state.items.get(form.item)
        if item is None:
            raise NotYourItemError("the project has no such item", found=form.item)
        judged = form.action == "judge"
        values = checked_values(self.row.project.task, item, form.given) if judged else {}
        reason = form.reason.strip()[:LONGEST_REASON]
        seconds = min(max(form.seconds, 0.0), ITEM_LEASE_SECONDS)
        again = judged and is_reconsidered(self.state, annotators, annotator, form.item)
        return Entry(
            0,
            form.item,
            annotator.number,
            form.action,
            _form_id(form.id),
            now,
            values,
            seconds,
            reason,
            again,
        )

    def _require_item(self, annotator: Annotator, form: Form, transaction: Transaction, now: float) -> None:
        """Refuse an item that is not the annotator's; an undo needs an entry."""
        has_entry = form.item in self.state.of_annotator(annotator.number)
        if has_entry and is_test_over(self.state, annotator, self.state.items[form.item].phase):
            raise NotYourItemError("the test is over, and its answers stay", found=form.item)
        phases = self.row.project.task.phases
        is_work = self.row.project.task.phase(self.state.items[form.item].phase).kind == "work"
        if is_work and any(result_of_test(self.state, annotator, one.name) == "failed" for one in phases):
            raise NotYourItemError("the test is not passed, and no items follow", found=form.item)
        if has_entry and form.action != "judge":
            return
        if form.action == "undo" or not self._may_judge(annotator, form.item, transaction, now):
            raise NotYourItemError(
                "this item is not in your hands any more", found=form.item, expected="the next item"
            )

    def _may_judge(self, annotator: Annotator, number: int, transaction: Transaction, now: float) -> bool:
        """Whether an item is judged by the annotator, in hand, or still free, as after a skip."""
        own = self.state.of_annotator(annotator.number).get(number)
        if own is not None and own.action == "judge":
            return True
        leases = transaction.leases(now)
        if any(lease.item == number and lease.annotator == annotator.number for lease in leases):
            return True
        item = self.state.items[number]
        return is_free(self.state, transaction.annotators(), annotator, leases, item)


# -- Existing texts that are similar to what an author writes, so that data stays diverse (CODIS, section
#    3.4)

MOST, LEAST = 3, 0.3
"""How many texts are shown, and the cosine from which they count as similar."""

NOTHING = "Nothing similar is there yet."

_WORD = re.compile(r"\w+")


def with_similar(state: State, item: Item, given: Given) -> Item:
    """Add the texts of similar items, if the task has such parts: first all about the same image."""
    parts = [part.name for part in state.project.task.shows if part.kind == "similar"]
    if not parts:
        return item
    of_image: list[str] = []
    others: list[str] = []
    for number, other in state.items.items():
        if number != item.number and (text := _written(state, number)):
            (of_image if item.cluster and other.cluster == item.cluster else others).append(text)
    own = " ".join((*_texts_of(item), *_filled(state, given)))
    found = (*of_image, *(others[place] for place in most_similar(own, others))) or (NOTHING,)
    return replace(item, texts={**item.texts, **dict.fromkeys(parts, found)})


def most_similar(text: str, others: Sequence[str], most: int = MOST) -> list[int]:
    """Find the texts that have the most in common with a text.

    >>> most_similar("Is the train leaving?", ["Which season is it?", "Is the train leaving or arriving?"])
    [1]
    """
    words = [Counter(_WORD.findall(one.casefold())) for one in (text, *others)]
    spread = Counter(word for of_text in words for word in of_text)
    weight = {word: math.log(1 + len(words) / count) for word, count in spread.items()}
    vectors = [{word: count * weight[word] for word, count in of_text.items()} for of_text in words]
    cosines = [(_cosine(vectors[0], vector), place) for place, vector in enumerate(vectors[1:])]
    return [place for cosine, place in sorted(cosines, key=lambda one: (-one[0], one[1])) if cosine >= LEAST][
        :most
    ]


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    lengths = math.hypot(*one.values()) * math.hypot(*other.values())
    return sum(weight * other.get(word, 0.0) for word, weight in one.items()) / lengths if lengths else 0.0


def _written(state: State, number: int) -> str:
    """The texts of an item, and what annotators wrote about it."""
    entries = state.of_item(number).values()
    written = [text for one in entries for text in _filled(state, as_given(one.values))]
    return "\n".join((*_texts_of(state.items[number]), *written))


def _texts_of(item: Item) -> list[str]:
    return [text for texts in item.texts.values() for text in texts]


def _filled(state: State, given: Given) -> list[str]:
    names = [field.name for field in state.project.task.fields if field.kind == "text"]
    return [text for name in names for text in given.get(name, ()) if text]


def _form_id(given: str) -> str:
    """The id of a form, by which one that is sent twice is added once."""
    if not given.strip():
        raise UserError(
            "the form has no id", field="form", expected="the form of a page: load the page again"
        )
    return given


# -- Checks what an annotator filled in: a form comes from a browser, and can hold anything


def checked_values(task: Task, item: Item, given: Given) -> Values:
    filled = {name: [text for text in texts if text.strip()] for name, texts in given.items()}
    values: dict[str, str | tuple[str, ...]] = {}
    for field in task.fields:
        if not is_asked(field, item, filled):
            continue
        texts = filled.get(field.name, [])
        if not texts:
            if field.required:
                raise UserError("nothing is filled in", field=field.label or field.name)
            continue
        values[field.name] = _checked(field, item, texts)
    if task.records in CHECKS:
        for fault in CHECKS[task.records](item, values):
            raise fault
    return values


def _checked(field: Field, item: Item, texts: Sequence[str]) -> str | tuple[str, ...]:
    name = field.label or field.name
    allowed = options_of(field, item)
    for text in texts:
        if allowed and text not in allowed:
            raise UserError("is not an option", field=name, found=text, expected=", ".join(allowed))
        if len(text) > field.longest:
            raise UserError("is too long", field=name, found=len(text), expected=f"at most {field.longest:,}")
    if field.kind == "choices":
        return tuple(text for text in allowed if text in texts)
    if len(texts) > 1:
        raise UserError("holds several values", field=name, found=", ".join(texts), expected="one")
    return texts[0].strip()
