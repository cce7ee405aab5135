"""A set of keys answers as a set of Python does."""

from __future__ import annotations

import hashlib
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from sightline.evaluation import estimate
from sightline.evaluation.estimate import KeySet

NUMBERS = st.lists(st.integers(0, 30), max_size=40)


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


@given(NUMBERS, NUMBERS, st.integers(1, 5))
def test_it_holds_each_key_once_and_joins_other_sets(first: list[int], second: list[int], few: int) -> None:
    with patch.object(estimate, "_RECENT", few):
        own, other = KeySet(), KeySet()
        for number in first:
            own.add(key(number))
        for number in second:
            other.add(key(number))
        assert len(own) == len(set(first))
        own.update(other)
    held = {number for number in range(31) if key(number) in own}
    assert held == {*first, *second}
    assert len(own) == len(held)
