"""Decodes JSON of other programs, which may hold numbers that JSON does not allow or that are too large."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

MAX_DIGITS = 18
"""Whole numbers up to this length fit into 64 bits."""


def lenient_json(text: str | bytes, constant: Callable[[str], Any] = float) -> Any:
    """Decode JSON. A number that 64 bits cannot hold (1e999, 10,000 digits) becomes a text.

    >>> lenient_json('{"a": 1e999, "b": 9999999999999999999, "c": 7}')
    {'a': '1e999', 'b': '9999999999999999999', 'c': 7}

    Args:
        text: The JSON.
        constant: Makes the value of NaN, Infinity and -Infinity from their name.

    Returns:
        The value.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text, parse_constant=constant, parse_float=_float, parse_int=_integer)


def _float(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else digits
