"""Parameters in the addresses of pages, and the error of an address without a page."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

from sightline.errors import UserError
from sightline.types import GroupKey

Word = TypeVar("Word", bound=str)


def with_query(request: Request, **changed: str | None) -> str:
    """The address of this page with other parameters; None or '' removes one."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in changed]
    query = urlencode([*kept, *((name, value) for name, value in changed.items() if value)])
    return f"{request.url.path}?{query}" if query else request.url.path


def group_address(key: GroupKey, run: int, query: str = "") -> str:
    """The address of a group in a run by its identity, whatever its number; `query` are the filters.

    >>> group_address(("a/b", 1, ""), 3, "right=none")
    '/runs/3/group?id=a%2Fb&draw=1&right=none'
    """
    named = zip(("id", "draw", "pooled"), key, strict=True)
    own = urlencode([(name, value) for name, value in named if name == "id" or value])
    return f"/runs/{run}/group?{own}" + (f"&{query}" if query else "")


def number_of(request: Request, name: str) -> int | None:
    """A parameter that is a number; None without it."""
    text = request.query_params.get(name, "")
    return read_number(name, text) if text else None


def read_number(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise UserError("no number", field=name, found=text, expected="a number")
    return int(text)


def read_word(name: str, text: str, words: Collection[Word]) -> Word:
    """Read one of some words, such as the names of a `Literal`, from an address or a form."""
    for word in words:
        if word == text:
            return word
    raise UserError("is not known", field=name, found=text, expected=" or ".join(words))


# -- The error of a page that does not exist


class NotFoundError(Exception):
    """There is nothing at this address; the text says what is missing."""
