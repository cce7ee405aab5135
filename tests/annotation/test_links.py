"""Personal links: only the holder of a valid one gets in, and only as that annotator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.annotation.links import (
    check,
    claim_of,
    form_token,
    image_name,
    invite,
    is_form_token,
    revoke,
    token_of,
)
from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.task import task
from sightline.annotation.types import Annotator, Item, Project
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.store.store import Store

ROW = ProjectRow(3, Project("p", task("rate")), b"s" * 32, 0.0, None)
ANNA = Annotator(1, "Anna", expires=1000.0)


def test_a_link_opens_until_it_expires() -> None:
    token = token_of(ROW, ANNA)
    assert check(token, ROW, ANNA, 999) is None
    assert check(token, ROW, ANNA, 1000) == "expired"


def test_a_revoked_link_ends_and_so_does_the_link_before_a_new_one() -> None:
    token = token_of(ROW, ANNA)
    assert check(token, ROW, replace(ANNA, revoked=True), 0) == "revoked"
    assert check(token, ROW, replace(ANNA, version=2), 0) == "revoked"


@given(
    st.integers(0, 10), st.integers(0, 10), st.integers(0, 3), st.integers(0, 5000), st.binary(max_size=30)
)
def test_no_changed_token_opens_anything(
    project: int, annotator: int, version: int, expires: int, other: bytes
) -> None:
    token = token_of(ROW, ANNA)
    signature = token.rpartition(".")[2]
    changed = f"{project}.{annotator}.{version}.{expires}.{signature}"
    if changed != token:
        assert check(changed, ROW, ANNA, 0) == "invalid"
    assert check(token[:-1] + ("A" if token[-1] != "A" else "B"), ROW, ANNA, 0) == "invalid"
    assert check(other.decode("latin-1"), ROW, ANNA, 0) == "invalid"


def test_a_token_of_another_annotator_or_project_is_not_valid() -> None:
    ben = replace(ANNA, number=2)
    assert check(token_of(ROW, ben), ROW, ANNA, 0) == "invalid"
    other = ProjectRow(3, ROW.project, b"t" * 32, 0.0, None)
    assert check(token_of(other, ANNA), ROW, ANNA, 0) == "invalid"


@given(st.text(max_size=80))
def test_any_text_is_refused_without_an_error(text: str) -> None:
    assert check(text, ROW, ANNA, 0) == "invalid"
    assert claim_of(text) is None or text.count(".") == 4


def test_a_form_token_is_for_one_annotator_and_one_item() -> None:
    token = form_token(ROW, ANNA, 5)
    assert is_form_token(token, ROW, ANNA, 5)
    assert not is_form_token(token, ROW, ANNA, 6)
    assert not is_form_token(token, ROW, replace(ANNA, number=2), 5)
    assert not is_form_token("ü", ROW, ANNA, 5)


def test_one_image_has_other_names_in_other_items() -> None:
    assert image_name(ROW, 1, "d") != image_name(ROW, 2, "d")
    assert "d" * 64 not in image_name(ROW, 1, "d" * 64)


def test_nobody_rates_answers_of_a_benchmark_that_they_answered(tmp_path: Path) -> None:
    store = AnnotationStore(Store.open(str(tmp_path / "s.db")), lambda: 0.0)
    for name, kind in (("humans", "respond"), ("blind", "rate"), ("other", "rate")):
        benchmark = "contextual:default" if name != "other" else "codis:default"
        store.create(Project(name, task(kind), benchmark=benchmark), [Item(1)])
    invite(store, store.project("humans"), "Anna", 9.0)
    with pytest.raises(UserError, match="annotator of the project humans"):
        invite(store, store.project("blind"), "ANNA", 9.0)
    assert invite(store, store.project("other"), "Anna", 9.0).number == 1


def test_an_annotator_who_is_invited_again_gets_a_new_link(tmp_path: Path) -> None:
    store = AnnotationStore(Store.open(str(tmp_path / "s.db")), lambda: 0.0)
    row = store.project(str(store.create(Project("p", task("rate")), [Item(1)])))
    first = invite(store, row, "Anna", 9.0)
    revoke(store, row, first.number)
    again = invite(store, row, " anna ", 9.0)
    assert (again.number, again.name, again.revoked) == (1, "Anna", False)
    assert check(token_of(row, first), row, again, 0) == "revoked"
    assert check(token_of(row, again), row, again, 0) is None


def test_links_begin_with_the_url_of_the_last_server_that_named_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = Store.open(str(tmp_path / "s.db"))
    store = AnnotationStore(opened, lambda: 0.0)
    store.create(Project("p", task("rate")), [Item(1)])
    store.keep_server_url("https://old.example.org")
    store.keep_server_url("https://annotate.example.org")
    opened.close()
    words = ["annotate", "invite", "p", "Anna", "--json", "--store", str(tmp_path / "s.db")]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["Anna"].startswith("https://annotate.example.org/annotate/")
    assert main([*words, "--url", "https://lab"]) == 0
    assert json.loads(capsys.readouterr().out)["Anna"].startswith("https://lab/annotate/")
