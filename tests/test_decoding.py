"""JSON of users and other programs is decoded, or refused with the position of the error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.text import json_records


def test_a_list_lines_and_one_object_give_the_same_records() -> None:
    path = Path("f")
    record = {"id": "1", "n": [1, 2]}
    for content in (
        b'[{"id": "1", "n": [1, 2]}]',
        b'{"id": "1", "n": [1, 2]}',
        b'{"id": "1",\n "n": [1, 2]}',
    ):
        assert [found for _, found in json_records(content, path)] == [record]


def test_blank_lines_are_skipped_but_count_as_lines() -> None:
    rows = json_records(b'{"a": 1}\n\n{"a": 2}\r\n', Path("f"))
    assert rows == [("line 1", {"a": 1}), ("line 3", {"a": 2})]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"a": 1}\n{"a": 2}\n{"a": ', "line 3"),
        (b'[\n{"a": 1},\n{"a": 2', "line 3"),
        (b'{"a": \n', "line "),
        (b'{"a": 1}\n{"a": "\xff"}\n', "line 2"),
        (b'[{"a": 1},\n{"a": "\xff"}]', "line 2"),
    ],
)
def test_the_error_of_truncated_json_names_its_line(content: bytes, line: str) -> None:
    with pytest.raises(UserError, match=line) as caught:
        json_records(content, Path("some.jsonl"))
    assert caught.value.file == Path("some.jsonl")


@pytest.mark.parametrize(
    "content", [b'{"a": "\\ud83d"}', b'{"a": 1}\n{"a": "\\ud83d"}', b'[{"a": "\\ud83d"}]']
)
def test_half_a_surrogate_pair_is_refused(content: bytes) -> None:
    with pytest.raises(UserError, match="surrogate"):
        json_records(content, Path("f"))


def test_an_entry_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(UserError, match="entry 2"):
        json_records(b'[{"a": 1}, 7]', Path("f"))


def test_the_nan_of_python_is_read() -> None:
    [(_, record)] = json_records(b'{"id": "1", "score": NaN}', Path("f"))
    assert record["id"] == "1"


@pytest.mark.parametrize("number", ["1e999", "1" * 10_000])
def test_a_number_that_is_too_large_is_read_as_a_text(number: str) -> None:
    for content in (f'{{"id": "1", "score": {number}}}', f'[{{"id": "1", "score": {number}}}]'):
        [(_, record)] = json_records(content.encode(), Path("f"))
        assert record == {"id": "1", "score": number}


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' * 100_000, '{"id": "1"}\n' + "[" * 100_000])
def test_json_nested_too_deeply_is_refused_with_the_limit(content: str) -> None:
    with pytest.raises(UserError, match=r"nested too deeply.*1,000 levels"):
        json_records(content.encode(), Path("f"))


_KEYS = st.sampled_from(["a", "b", '"', ":", '":', 'a":', "\\", "é"])
_VALUES = st.recursive(
    st.integers(0, 3) | st.text('": \\a{}[],', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(_KEYS, inner), max_size=3).map(tuple),
    max_leaves=6,
)


@given(st.lists(st.tuples(_KEYS, _VALUES), min_size=1, max_size=4), st.sampled_from(["", " ", "\t"]))
def test_a_key_that_stands_twice_is_refused_at_any_depth(pairs: list[Any], space: str) -> None:
    def written(value: Any) -> str:
        if isinstance(value, list):
            return f"[{','.join(map(written, value))}]"
        if isinstance(value, tuple):
            return f"{{{','.join(f'{json.dumps(key)}{space}:{written(one)}' for key, one in value)}}}"
        return json.dumps(value)

    twice = []

    def note(found: list[tuple[str, Any]]) -> None:
        twice.append(len(dict(found)) < len(found))

    content = written(tuple(pairs))
    json.loads(content, object_pairs_hook=note)
    try:
        json_records(content.encode(), Path("f"), keys_once=True)
        refused = False
    except UserError:
        refused = True
    assert refused == any(twice)
