"""Groups that a temporary file holds: of a run of any size, memory holds the keys and one group at a time."""

from __future__ import annotations

import weakref
import zlib
from array import array
from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile

import msgspec

from sightline.types import Group, GroupKey

_IN_MEMORY = 1 << 23
"""The bytes from which the file is on the disk."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Group).decode


class StoredGroups(Mapping[GroupKey, Group]):
    """Groups by their keys, in the order in which they were added. The file is deleted with this object."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._numbers: dict[GroupKey, int] = {}
        self._ends = array("Q", [0])
        weakref.finalize(self, self._file.close)

    def add(self, group: Group) -> None:
        """Add a group; one with the same key is replaced."""
        # The fastest level: responses, prompts and digests take a third of the space.
        body = zlib.compress(_encode(group), 1)
        self._file.seek(self._ends[-1])
        self._file.write(body)
        self._numbers[group.key] = len(self._ends) - 1
        self._ends.append(self._ends[-1] + len(body))

    def __getitem__(self, key: GroupKey) -> Group:
        number = self._numbers[key]
        start, end = self._ends[number], self._ends[number + 1]
        self._file.seek(start)
        return _decode(zlib.decompress(self._file.read(end - start)))

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._numbers)

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._numbers)

    def __contains__(self, key: object) -> bool:
        """Whether there is a group with this key; it is not read."""
        return key in self._numbers
