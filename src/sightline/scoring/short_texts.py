"""A bounded cache of pure functions of short texts, which rules read several times in one case."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Generic, ParamSpec, TypeVar

SHORT = 256
"""The most characters of texts whose result is kept: a cache takes a few MB at most."""

ENTRIES = 1024

P = ParamSpec("P")
T = TypeVar("T")


class cached_for_short_texts(Generic[P, T]):  # noqa: N801 - a decorator
    """Decorates a pure function of texts: the latest results for short texts are kept.

    The arguments are texts, given by position, and the result is immutable.
    """

    __wrapped__: Callable[P, T]

    def __init__(self, function: Callable[P, T]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._cached = lru_cache(maxsize=ENTRIES)(function)

    def __call__(self, *texts: P.args, **named: P.kwargs) -> T:
        """The result of the function."""
        if sum(map(len, texts)) > SHORT:  # type: ignore[arg-type]
            return self._function(*texts, **named)
        return self._cached(*texts, **named)  # type: ignore[arg-type]
