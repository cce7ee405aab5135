"""Texts of models and data of every kind are indexed, found and returned unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.viewer.index.conftest import write_lines

import sightline
from sightline.store.store import Store
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_types import GroupFilter
from sightline.viewer.run_index import words_of

HOSTILE = [
    "<script>alert(1)</script> {{ 7*7 }} {% raw %}",
    "null\0byte",
    "\u202egnp.exe\u2066 \x1b[31mred",
    "'; DROP TABLE index_runs; -- \" OR 1=1 & | ! ( ) : * NEAR AND OR NOT",
    "図書館で 本を読む ÅÉ ﬁ",
    "x" * 1_000_000 + " needle",
    "many " * 100_000,
    "%s %(name)s ? :name \\ ` $1",
]


@pytest.mark.slow
def test_hostile_texts_are_indexed_and_returned_unchanged(store_url: str, tmp_path: Path) -> None:
    names = [text[:200] for text in HOSTILE]
    lines = [
        {
            "group": f"g{number} {name}",
            "variant": "v",
            "prompt": f"prompt {name}",
            "references": ["a"],
            "labels": {f"label {name}": name},
        }
        for number, name in enumerate(names)
    ]
    answers = [
        {"group": line["group"], "variant": "v", "response": text}
        for line, text in zip(lines, HOSTILE, strict=True)
    ]
    data = write_lines(tmp_path / "groups.jsonl", lines)
    given_answers = write_lines(tmp_path / "answers.jsonl", answers)
    sightline.run(f"groups:{data}", model=f"replay/{given_answers}", store=store_url)
    store = Store.open(store_url)
    index = OutcomeIndex(store)
    index.build(1)
    for number, text in enumerate(HOSTILE, start=1):
        detail = index.open(1).group(number)
        assert detail.outcomes[0].response == text
        name = names[number - 1]
        labelled = index.open(1).page(GroupFilter(labels=((f"label {name}", name),)))
        assert [row.number for row in labelled.rows] == [number]
        found = index.open(1).page(GroupFilter(search=name))
        assert number in [row.number for row in found.rows]
    assert len([one for one in index.open(1).facets().facets if one.label]) == len(HOSTILE)
    store.close()


@given(st.text(), st.text())
def test_the_words_of_two_texts_are_those_of_each(one: str, other: str) -> None:
    assert words_of(f"{one} {other}") == words_of(one) | words_of(other)
    if one.isascii():
        assert words_of(one.upper()) == words_of(one)


@given(st.text())
def test_a_word_has_only_letters_and_digits(text: str) -> None:
    for word in words_of(text):
        assert word.isalnum()
        assert words_of(word) == {word}
