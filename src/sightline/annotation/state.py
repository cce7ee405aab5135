"""The state of a project: a pure function of its items and its log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sightline.annotation.types import Entry, Item, Project


class State:
    """What the log says up to its last entry. `advance` applies newer entries; it is not thread-safe.

    Attributes:
        phases: The phases that have items.
        last: The number of the last entry that was applied.
        judged: Item -> how many annotators have judged it.
        reported: Item -> how many annotators have reported it as broken.
    """

    def __init__(self, project: Project, items: Sequence[Item]) -> None:
        """Begin with an empty log.

        Args:
            project: The project.
            items: Its items.
        """
        self.project = project
        self.items: Mapping[int, Item] = {item.number: item for item in items}
        self.phases = frozenset(item.phase for item in items)
        self.last = 0
        self.judged: Counter[int] = Counter()
        self.reported: Counter[int] = Counter()
        self._by_item: dict[int, dict[int, Entry]] = defaultdict(dict)
        self._by_annotator: dict[int, dict[int, Entry]] = defaultdict(dict)
        self._consented: set[int] = set()
        self._seen: dict[int, int] = {}

    def advance(self, entries: Iterable[Entry]) -> None:
        """Apply entries that follow the last one.

        Args:
            entries: The entries, in the order of the log.
        """
        for entry in entries:
            self.last = entry.number
            if entry.action == "consent":
                self._consented.add(entry.annotator)
            elif entry.action == "undo":
                self._count(entry)
                self._by_item[entry.item].pop(entry.annotator, None)
                self._by_annotator[entry.annotator].pop(entry.item, None)
            else:
                self._count(entry)
                # A changed judgement keeps its place in the order of the annotator.
                self._by_item[entry.item][entry.annotator] = entry
                self._by_annotator[entry.annotator][entry.item] = entry
                self._seen[entry.annotator] = entry.item

    def _count(self, entry: Entry) -> None:
        """Count an entry in the place of the annotator's earlier one on the item."""
        before = self._by_item[entry.item].get(entry.annotator)
        for count, action in ((self.judged, "judge"), (self.reported, "broken")):
            count[entry.item] += (entry.action == action) - (before is not None and before.action == action)

    def has_consented(self, annotator: int) -> bool:
        """Whether an annotator has consented.

        Args:
            annotator: The number of the annotator.

        Returns:
            Whether the log says so.
        """
        return annotator in self._consented

    def of_item(self, item: int) -> Mapping[int, Entry]:
        """The entries that count of an item.

        Args:
            item: The number of the item.

        Returns:
            Annotator -> the judgement, skip or report that stands.
        """
        return self._by_item.get(item, {})

    def of_annotator(self, annotator: int) -> Mapping[int, Entry]:
        """The entries that count of an annotator.

        Args:
            annotator: The number of the annotator.

        Returns:
            Item -> entry, in the order in which the annotator worked.
        """
        return self._by_annotator.get(annotator, {})

    def last_item(self, annotator: int) -> Item | None:
        """The item that an annotator saw last.

        Args:
            annotator: The number of the annotator.

        Returns:
            The item; None if there is none.
        """
        number = self._seen.get(annotator)
        return None if number is None else self.items.get(number)
