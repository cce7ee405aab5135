"""Damage to files: cut, overwritten, of other types, nested too deeply, with impossible numbers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from hypothesis import strategies as st

DEEP = 200_000
"""Levels of nesting; every decoder of recursive descent gives up before."""


def _database() -> bytes:
    """A SQLite file of another program."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE a (b)")
        connection.execute("INSERT INTO a VALUES (1)")
        return connection.serialize()


CONTENTS = (
    _database(),
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ",
    b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00N.",
    b"",
    b" \n",
    b"\x00",
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf",
    b"\x1f\x8b\x08\x00",
    b"PK\x03\x04",
    b"null",
    b"true",
    b"7",
    b'"text"',
    b"[]",
    b"{}",
    b"[1]",
    b"[null]",
    b"[{}]",
    b"{}\n{}",
    b'{"\\u0000\\u001b[31m": 1}',
    b'"\\ud800"',
    b'{"a": NaN}',
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"a=" + b"[" * DEEP,
    b"a." * DEEP + b"a=1",
    b"9" * 10_000,
    b'{"a": ' + b"9" * 10_000 + b"}",
    b"a=" + b"9" * 10_000,
)
"""Whole files of another content."""

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, 10**400, 1.5, -1e308, float("nan"), float("inf")),
    *("", "\x00\x1b[31m\u202e", "\ud800", "../../etc/passwd", "/", "9" * 5000, "a" * 70_000),
    *([], {}, [[]], [None], {"": ""}, {"\x1b[31m\x00": 1}, ["text"], [[1, 2]], {"a": {"b": []}}),
)
"""Values in the place of others."""

PIECES = (
    b"\xff",
    b"\x00",
    b"\x1b[31m",
    b'"',
    b"'",
    b"{",
    b"]",
    b",",
    b"\n",
    b"\r",
    b"\t",
    b"=",
    b"\\",
    b"\xed\xa0\x80",
)
"""Bytes in the midst of a file."""


class Damage(NamedTuple):
    """What became of a file; as text it is short."""

    content: bytes

    def __repr__(self) -> str:
        return f"{self.content[:300]!r} ({len(self.content)} bytes)"


def damaged(valid: bytes) -> st.SearchStrategy[Damage]:
    """Files that were once valid, and whole files of another content.

    Args:
        valid: The content of a valid file.

    Returns:
        What became of it.
    """
    place = st.integers(0, len(valid))
    kinds: list[st.SearchStrategy[bytes]] = [
        st.sampled_from(CONTENTS),
        place.map(lambda end: valid[:end]),
        st.tuples(place, place).map(lambda both: valid[: min(both)] + valid[max(both) :]),
        st.tuples(place, st.sampled_from(PIECES)).map(lambda one: valid[: one[0]] + one[1] + valid[one[0] :]),
        st.tuples(place, st.integers(1, 255)).map(lambda one: _flipped(valid, *one)),
    ]
    if documents := _documents(valid):
        kinds += [_changed(documents)] * 5
    return st.one_of(kinds).map(Damage)


def _flipped(valid: bytes, place: int, mask: int) -> bytes:
    return b"".join(
        (valid[:place], bytes(byte ^ mask for byte in valid[place : place + 1]), valid[place + 1 :])
    )


def _documents(content: bytes) -> list[Any]:
    """The JSON documents of a file, one or one a line; none if it holds something else."""
    for parts in ([content], content.splitlines()):
        try:
            return [json.loads(part) for part in parts]
        except ValueError:
            continue
    return []


def _changed(documents: list[Any]) -> st.SearchStrategy[bytes]:
    """The documents with another value, without a field or with another name of it, at any place."""
    places = list(_places(documents))
    changes = st.one_of(
        st.sampled_from(VALUES).map(lambda value: ("value", value)),
        st.sampled_from([("gone", 0), ("named", 0)]),
    )
    return st.tuples(st.sampled_from(places), changes).map(lambda one: _with_change(documents, *one))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield from _places(inner, (*path, key))


def _with_change(documents: list[Any], path: tuple[Any, ...], change: tuple[str, Any]) -> bytes:
    copied = json.loads(json.dumps(documents))
    *outer, last = path
    place = copied
    for key in outer:
        place = place[key]
    kind, value = change
    if kind == "value":
        place[last] = value
    elif kind == "gone":
        del place[last]
    elif isinstance(place, dict):
        place["\x1b[31m\x00"] = place.pop(last)
    return b"\n".join(json.dumps(one).encode() for one in copied)
