"""Orders of options differ from each other while there are orders left."""

from __future__ import annotations

from collections import Counter
from math import factorial, prod

from hypothesis import given
from hypothesis import strategies as st

from sightline.benchmarks.iibench.benchmark import option_orders


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), st.integers(1, 12), st.text(max_size=3))
def test_orders_are_distinct_arrangements_until_all_were_shown(
    options: list[str], count: int, seed: str
) -> None:
    orders = list(option_orders(options, count, seed))
    arrangements = factorial(len(options)) // prod(map(factorial, Counter(options).values()))
    assert orders[0] == tuple(options)
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(options))}
    assert len(orders) == count
    assert len(set(orders)) == min(count, arrangements)
    assert orders == list(option_orders(options, count, seed))
