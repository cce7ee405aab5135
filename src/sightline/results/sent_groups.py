"""The groups of a run whose probes were all sent; metrics leave out all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sightline.types import Group, GroupKey


class SentGroups(Mapping[GroupKey, Group]):
    """A view of the groups that were sent completely."""

    def __init__(self, groups: Mapping[GroupKey, Group]) -> None:
        self._groups = groups
        self._left_out: set[GroupKey] = set()
        self.not_sent = 0
        for key, group in groups.items():
            if not group.sent:
                self._left_out.add(key)
                self.not_sent += sum(outcome.status == "not_sent" for outcome in group)

    def __getitem__(self, key: GroupKey) -> Group:
        if key in self._left_out:
            raise KeyError(key)
        return self._groups[key]

    def __iter__(self) -> Iterator[GroupKey]:
        return (key for key in self._groups if key not in self._left_out)

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._groups) - len(self._left_out)
