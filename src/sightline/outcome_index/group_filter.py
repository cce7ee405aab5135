"""Which groups of a run a list shows: a filter, and its form in a URL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from msgspec import Struct

from sightline.errors import UserError
from sightline.outcome_index.types import Comparability, Consistency, JudgeView, ResponseLength, RightShare
from sightline.types import VerdictName

CHOICES: dict[str, tuple[str, ...]] = {
    "right": get_args(RightShare),
    "consistency": (*get_args(Consistency), *get_args(Comparability)),
    "verdict": get_args(VerdictName),
    "judges": get_args(JudgeView),
    "length": get_args(ResponseLength),
}
"""Field -> its values, in the order of lists."""

LABEL = "label."
"""The start of the name of a label in a URL."""


class GroupFilter(Struct, frozen=True):
    """The groups that fulfil every condition; None and '' are no condition.

    Attributes:
        right: Whether all, some or none of the answers are right.
    """

    right: RightShare | None = None
    consistency: Consistency | Comparability | None = None
    verdict: VerdictName | None = None
    judges: JudgeView | None = None
    length: ResponseLength | None = None
    labels: tuple[tuple[str, str], ...] = ()
    search: str = ""

    def to_query(self) -> list[tuple[str, str]]:
        """The filter as the parameters of a URL."""
        fields = [(name, value) for name in CHOICES if (value := getattr(self, name)) is not None]
        labels = [(LABEL + name, value) for name, value in self.labels]
        return [*fields, *labels, *([("search", self.search)] if self.search else [])]


EVERY = GroupFilter()
"""All groups."""


def filter_of(parameters: Iterable[tuple[str, str]]) -> GroupFilter:
    """Read a filter from the parameters of a URL: the inverse of `GroupFilter.to_query`."""
    fields: dict[str, Any] = {}
    labels: list[tuple[str, str]] = []
    for name, value in parameters:
        if not value:
            continue
        if name.startswith(LABEL):
            labels.append((name.removeprefix(LABEL), value))
        elif name == "search":
            fields[name] = value
        elif name in CHOICES:
            if value not in CHOICES[name]:
                raise UserError(
                    "no such filter", field=name, found=value, expected=" or ".join(CHOICES[name])
                )
            fields[name] = value
    return GroupFilter(**fields, labels=tuple(dict.fromkeys(labels)))
