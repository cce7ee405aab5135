"""Texts of models and data of every kind are indexed, found and returned unchanged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.viewer.index.conftest import write_lines

import sightline
from sightline.store.store import Store
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_types import GroupFilter
from sightline.viewer.run_index import TOKENIZER, RunIndex, matched_words, spaced_words

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


TEXTS = {
    1: "The C++ café's menu, 100% vegan (9-11): AND OR NOT NEAR(x) col:value *",
    2: "図書館で本を読む。",
    3: "図と書と館",
    4: "カフェで働く ＡＢＣ 学校에서 ภาษาไทย",
    5: "tail-recursion menu",
}
"""The number of a group -> its response."""


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunIndex]:
    folder = tmp_path_factory.mktemp("searched")
    lines = [{"group": f"g{number}", "variant": "v", "prompt": "p", "references": ["a"]} for number in TEXTS]
    answers = [{"group": f"g{number}", "variant": "v", "response": text} for number, text in TEXTS.items()]
    data = write_lines(folder / "groups.jsonl", lines)
    given_answers = write_lines(folder / "answers.jsonl", answers)
    sightline.run(f"groups:{data}", model=f"replay/{given_answers}", store=str(folder / "s.db"))
    store = Store.open(str(folder / "s.db"))
    index = OutcomeIndex(store)
    index.build(1)
    yield index.open(1)
    store.close()


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("menu", [1, 5]),
        ("MENU café", [1]),
        ("cafe", [1]),
        ("café's", [1]),
        ("cafés", []),
        ("9-11", [1]),
        ("11-9", []),
        ("9 11", [1]),
        ("11 9", [1]),
        ("recursion-tail", []),
        ("recursion tail", [5]),
        ("AND", [1]),
        ("menu AND", [1]),
        ("menu NOT vegan", [1]),
        ("menu OR nowhere", []),
        ("NEAR(x)", [1]),
        ("col:value", [1]),
        ("text:menu", []),
        ("men*", []),
        ("^menu", [1, 5]),
        ('"menu', [1, 5]),
        ('menu"', [1, 5]),
        ('"', []),
        ('""', []),
        ("?", []),
        ("menu ?", [1, 5]),
        ("-vegan", [1]),
        ("100%", [1]),
        ("図書", [2]),
        ("図書館", [2]),
        ("書図", []),
        ("図 館", [2, 3]),
        ("本", [2]),
        ("む", [2]),
        ("カフェ", [4]),
        ("ｶﾌｪ", [4]),
        ("abc", [4]),
        ("학교", []),
        ("에서", [4]),
        ("ไทย", [4]),
        ("\0", []),
        ("menu,\0vegan", []),
        ("100\0vegan", [1]),
        ("\ud800 menu", [1, 5]),
    ],
)
def test_words_are_found_as_they_stand_whatever_signs_they_have(
    search: str, found: list[int], searched: RunIndex
) -> None:
    assert searched.numbers_of(GroupFilter(search=search)) == found


@given(search=st.text(min_size=1))
def test_no_search_is_an_error_and_the_order_of_its_words_is_nothing(search: str, searched: RunIndex) -> None:
    turned = " ".join(reversed(search.split())) or " "
    found = searched.numbers_of(GroupFilter(search=search))
    assert found == searched.numbers_of(GroupFilter(search=turned))


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1))
def test_a_text_is_found_by_each_of_its_parts_between_spaces(text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE words USING fts5 (text, tokenize='{TOKENIZER}')")
        connection.execute("INSERT INTO words VALUES (?)", (spaced_words(f"one {text} two"),))
        query = matched_words(text)
        found = connection.execute("SELECT count(*) FROM words WHERE words MATCH ?", (query,)).fetchone()
        assert found == (1,)
