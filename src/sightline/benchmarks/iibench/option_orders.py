"""The orders in which the options of a question are shown."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from math import factorial, prod


def option_orders(options: Sequence[str], count: int, seed: str) -> Iterator[tuple[str, ...]]:
    """The order of the file, then shuffled ones."""
    order = tuple(options)
    yield order
    if count == 1:
        return  # Most settings show one order, and need none of what follows.
    distinct = factorial(len(options)) // prod(map(factorial, Counter(options).values()))
    shown = {order}
    for number in range(1, count):
        if len(shown) == distinct:
            shown.clear()
        generator = random.Random(f"{seed}/{number}")
        order = tuple(generator.sample(options, len(options)))
        while order in shown:
            order = tuple(generator.sample(options, len(options)))
        shown.add(order)
        yield order
