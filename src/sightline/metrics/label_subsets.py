"""The subsets of metrics: one for each value of each label that sorts groups."""

from __future__ import annotations

from collections.abc import Iterator

from sightline.types import Labels

ALL = 0
"""The number of the subset of all terms."""

MOST_VALUES = 100
"""A label with more values than this (a file name, say) has no subsets: the table would be too long."""


class LabelSubsets:
    """The values of labels that groups and terms carry, numbered in the order of their appearance.

    A label with more than MOST_VALUES values identifies groups rather than sorting them: its values are
    forgotten.
    """

    def __init__(self) -> None:
        self._values: dict[str, dict[str, int] | None] = {}
        self._size = ALL + 1

    def numbers(self, labels: Labels) -> list[int]:
        """The subsets of a set of labels: those of each value of each label."""
        return [
            number
            for name, values in labels.items()
            for value in dict.fromkeys(each_value(values))
            if (number := self._number(name, value)) is not None
        ]

    def ordered(self) -> Iterator[tuple[int, str, str]]:
        """The subsets in the order of tables: labels by their first appearance, then by value.

        Yields:
            The number of the subset, the name of its label, and the value.
        """
        for name, values in self._values.items():
            for value in sorted(values or ()):
                yield (values or {})[value], name, value

    def _number(self, name: str, value: str) -> int | None:
        """The number of a subset; None if the label has too many values."""
        values = self._values.setdefault(name, {})
        if values is None:
            return None
        if value not in values:
            if len(values) == MOST_VALUES:
                self._values[name] = None
                return None
            values[value] = self._size
            self._size += 1
        return values[value]


def each_value(values: str | tuple[str, ...]) -> tuple[str, ...]:
    """The values of a label."""
    return (values,) if isinstance(values, str) else values
