"""A run is found by its number or its name; a name is neither a number nor a path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.cli.main import main
from sightline.errors import UserError
from sightline.evaluation.runs import find_run
from sightline.formats.jsonl import LONGEST, check_run_name, check_tags, is_run_name
from sightline.store.store import Store
from training.scenes.build import generate_codis


@pytest.mark.parametrize("name", ["llava-13b", "v1.5", "sizes:llava_size=224", "2026-01-31", "基準", "a+b"])
def test_words_and_dates_are_names(name: str) -> None:
    check_run_name(name)


@pytest.mark.parametrize(
    "name", ["12", "１２", "1e3", "-3", "1_000", "nan", "results/a", "a\\b", ".", "..", "~", "", "a b", "a,b"]
)
def test_numbers_paths_and_lists_are_no_names(name: str) -> None:
    with pytest.raises(UserError, match="the name of a run"):
        check_run_name(name)


def test_a_name_has_a_largest_length() -> None:
    check_run_name("a" * LONGEST)
    with pytest.raises(UserError):
        check_run_name("a" * (LONGEST + 1))


@given(st.text(max_size=8))
def test_a_name_is_one_word_that_no_command_takes_for_a_number_or_an_option(text: str) -> None:
    if is_run_name(text):
        assert not text.isdecimal()
        assert not re.search(r"[\s,/\\\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)
        assert text[0] not in "-.~"


def test_a_tag_may_be_a_number_but_no_list() -> None:
    check_tags(["2026", "july"])
    with pytest.raises(UserError, match=r"a tag .*found 'a,b'"):
        check_tags(["july", "a,b"])


def test_a_run_is_found_by_number_or_name_and_a_similar_name_is_suggested(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    run = store.runs.start({})
    store.labels.give_name(run, "baseline")
    assert find_run(store, str(run)) == find_run(store, "baseline") == run
    with pytest.raises(UserError, match=r"no run is called 'basline', did you mean 'baseline'\?.*runs list"):
        find_run(store, "basline")
    for number in ("9" * 18, str(2**63), "9" * 5000):
        with pytest.raises(UserError, match="there is no run"):
            store.runs.get(find_run(store, number))
    store.close()


def test_the_name_of_a_model_is_answered_with_its_runs(tmp_path: Path) -> None:
    data = generate_codis(tmp_path / "codis", pairs=2)
    store = str(tmp_path / "s.db")
    words = ["run", "codis", "--model", "baseline/chance", "--data", str(data), "--store", store, "--quiet"]
    assert main(words) == 0
    opened = Store.open(store)
    with pytest.raises(UserError, match=r"it is the model of run 1 \(codis:default\)"):
        find_run(opened, "baseline/chance")
    opened.close()
