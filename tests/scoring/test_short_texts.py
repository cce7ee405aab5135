"""The cache of rules: results are those of the function, once for each short text, and it is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sightline.scoring.text import ENTRIES, SHORT, cached_for_short_texts


@given(st.lists(st.tuples(st.text(), st.text())))
def test_results_are_those_of_the_function(pairs: list[tuple[str, str]]) -> None:
    @cached_for_short_texts
    def joined(first: str, second: str) -> str:
        return f"{first}|{second}"

    for _ in range(2):
        assert [joined(*pair) for pair in pairs] == [f"{first}|{second}" for first, second in pairs]


def test_a_short_text_is_read_once_a_long_one_each_time_and_old_results_are_dropped() -> None:
    read: list[str] = []

    @cached_for_short_texts
    def size(text: str) -> int:
        read.append(text)
        return len(text)

    short, long = "x" * SHORT, "x" * (SHORT + 1)
    for _ in range(2):
        assert (size(short), size(long)) == (SHORT, SHORT + 1)
    assert read == [short, long, long]
    for number in range(ENTRIES):
        size(str(number))
    size(short)
    assert read[-1] == short
