"""The state of a project: a pure function of its items and its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from sightline.annotation.types import Entry, Item, Project
from sightline.scoring.text import folded

RESPONSE = "response"
"""The name of the answer in the values of an entry that accepts or rejects it."""

GUIDELINES = "guidelines"
"""The name of the text in the values of an entry with new guidelines."""

_ON_ITEMS = ("judge", "skip", "broken", "undo")
"""The actions that change what an annotator says about an item."""


class State:
    """What the log says up to its last entry. It does not change: threads may share it."""

    def __init__(self, project: Project, items: Sequence[Item]) -> None:
        self.project = project
        self.items: Mapping[int, Item] = {item.number: item for item in items}
        self.phases = frozenset(item.phase for item in items)
        self.last = 0
        self.judged: Counter[int] = Counter()
        self.reported: Counter[int] = Counter()
        self._by_item: dict[int, dict[int, Entry]] = {}
        self._by_annotator: dict[int, dict[int, Entry]] = {}
        self._consented: frozenset[int] = frozenset()
        self._seen: dict[int, int] = {}
        self._independent: dict[tuple[int, int], Entry] = {}
        self._first: dict[tuple[int, int], Entry] = {}
        self._open: dict[int, int] = {}
        self._accepted: dict[tuple[int, str], bool] = {}
        self.versions: tuple[Entry, ...] = ()
        self.remarks: tuple[Entry, ...] = ()

    def advance(self, entries: Sequence[Entry]) -> State:
        """Apply entries that follow the last one."""
        if not entries:
            return self
        after = copy(self)
        after.last = entries[-1].number
        after.judged, after.reported = self.judged.copy(), self.reported.copy()
        after._consented |= {entry.annotator for entry in entries if entry.action == "consent"}
        compared = [entry for entry in entries if entry.action in ("accept", "reject")]
        after._accepted = self._accepted | {
            same_answer(entry.item, str(entry.values[RESPONSE])): entry.action == "accept"
            for entry in compared
        }
        after.versions += tuple(entry for entry in entries if entry.action == "guidelines")
        after.remarks += tuple(entry for entry in entries if entry.action == "remark")
        acted = [entry for entry in entries if entry.action in _ON_ITEMS]
        after._by_item = _copied(self._by_item, {entry.item for entry in acted})
        after._by_annotator = _copied(self._by_annotator, {entry.annotator for entry in acted})
        after._independent, after._first = dict(self._independent), dict(self._first)
        after._open = dict(self._open)
        after._seen = self._seen | {entry.annotator: entry.item for entry in acted if entry.action != "undo"}
        for entry in acted:
            after._apply(entry)
        after.reported = +after.reported
        return after

    def _apply(self, entry: Entry) -> None:
        """Put an entry in the place of the annotator's earlier one on the item; only for `advance`."""
        of_item, of_annotator = self._by_item[entry.item], self._by_annotator[entry.annotator]
        before = of_item.get(entry.annotator)
        stands = self._that_stands(before, entry)
        item = self.items.get(entry.item)
        if item is not None and item.expected:
            self._remember_first(entry)
        elif entry.action != "undo":
            self._open.pop(entry.annotator, None)
        for count, action in ((self.judged, "judge"), (self.reported, "broken")):
            count[entry.item] += _is(stands, action) - _is(before, action)
        if stands is None:
            of_item.pop(entry.annotator, None)
            of_annotator.pop(entry.item, None)
        else:
            # A changed judgement keeps its place in the order of the annotator.
            of_item[entry.annotator] = of_annotator[entry.item] = stands

    def _that_stands(self, before: Entry | None, entry: Entry) -> Entry | None:
        """What stands after an entry; the undo of a reconsidered judgement brings the first one back."""
        about = (entry.item, entry.annotator)
        if entry.action == "undo":
            return self._independent.pop(about, None)
        if entry.reconsidered and before is not None:
            self._independent.setdefault(about, before)
        else:
            self._independent.pop(about, None)
        return entry

    def _remember_first(self, entry: Entry) -> None:
        """Keep the judgement of an item with known values; it can change until the annotator goes on."""
        about, is_open = (entry.item, entry.annotator), self._open.get(entry.annotator) == entry.item
        if entry.action == "undo":
            if is_open:
                self._first.pop(about, None)
            return
        if is_open or not _is(self._first.get(about), "judge"):
            self._first[about] = entry
            self._open[entry.annotator] = entry.item
        else:
            self._open.pop(entry.annotator, None)

    @property
    def guidelines(self) -> str:
        """The newest version; the task has the first one."""
        return str(self.versions[-1].values[GUIDELINES]) if self.versions else self.project.task.guidelines

    def version_at(self, entry: Entry) -> int:
        """The version of the guidelines, from 1, under which an entry was made."""
        return 1 + sum(version.number < entry.number for version in self.versions)

    def has_new_guidelines(self, annotator: int) -> bool:
        """Whether the guidelines changed since an annotator's latest entry."""
        own = [entry.number for entry in self.of_annotator(annotator).values()]
        return bool(self.versions and own) and self.versions[-1].number > max(own)

    def has_consented(self, annotator: int) -> bool:
        return annotator in self._consented

    def is_accepted(self, item: int, response: str) -> bool | None:
        """Whether the owner accepts an answer to an item with known values; None if undecided."""
        return self._accepted.get(same_answer(item, response))

    def of_item(self, item: int) -> Mapping[int, Entry]:
        """The entries that count of an item."""
        return self._by_item.get(item, {})

    def independent(self, item: int) -> Mapping[int, Entry]:
        """The entries of an item that were made without a look at those of others."""
        of_item = self.of_item(item)
        return {by: self._independent.get((item, by), entry) for by, entry in of_item.items()}

    def first_of(self, annotator: int) -> Mapping[int, Entry]:
        """What an annotator said about items with known values, before going on to another item."""
        return {item: entry for (item, by), entry in self._first.items() if by == annotator}

    def of_annotator(self, annotator: int) -> Mapping[int, Entry]:
        """The entries that count of an annotator."""
        return self._by_annotator.get(annotator, {})

    def last_item(self, annotator: int) -> Item | None:
        """The item that an annotator saw last; None if there is none."""
        number = self._seen.get(annotator)
        return None if number is None else self.items.get(number)


def _is(entry: Entry | None, action: str) -> bool:
    return entry is not None and entry.action == action


def same_answer(item: int, response: str) -> tuple[int, str]:
    """What is equal for answers to one item that the owner decides as one."""
    return item, folded(response).strip()


def _copied(entries: Mapping[int, dict[int, Entry]], changed: Iterable[int]) -> dict[int, dict[int, Entry]]:
    return {**entries, **{number: dict(entries.get(number, {})) for number in changed}}
