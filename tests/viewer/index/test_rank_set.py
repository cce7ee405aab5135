"""Sets of ranks: pages can be read forwards and backwards."""

from __future__ import annotations

from itertools import islice, pairwise

from hypothesis import given
from hypothesis import strategies as st

from sightline.viewer.index_types import page_before, ranks_after, set_of


@given(ranks=st.sets(st.integers(0, 200), min_size=1), limit=st.integers(1, 7))
def test_the_page_before_a_page_is_the_one_that_led_to_it(ranks: set[int], limit: int) -> None:
    chosen, begins = set_of(sorted(ranks), 201), [-1]
    while page := list(islice(ranks_after(chosen, begins[-1]), limit)):
        begins.append(page[-1])
    for before, after in pairwise(begins):
        found = page_before(chosen, after, limit)
        assert (-1 if found is None else found) == before or not set(ranks_after(chosen, after))
