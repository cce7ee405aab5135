"""A run has its name and tags from the start; a name moves only to a run of the same evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.errors import UserError
from sightline.evaluation.run import run_evaluation
from sightline.evaluation.spec import Spec
from sightline.models.offline import ChanceBaseline
from sightline.store.runs import Labels
from sightline.store.store import Store
from sightline.types import Answer, Failure, Request
from training.scenes.build import generate_codis


@pytest.fixture(scope="module")
def codis(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(generate_codis(tmp_path_factory.mktemp("drawn") / "codis", pairs=6))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "s.db")


def labels(url: str) -> dict[int, Labels]:
    store = Store.open(url, create=False)
    try:
        return store.labels.all()
    finally:
        store.close()


def numbers(url: str) -> list[int]:
    store = Store.open(url, create=False)
    try:
        return [run.number for run in store.runs.all()]
    finally:
        store.close()


def run(codis: str, url: str, **options: Any) -> sightline.Evaluation:
    return sightline.run("codis", **{"model": "baseline/chance", "data": codis, "store": url, **options})


def test_a_run_has_its_name_and_tags(codis: str, url: str) -> None:
    assert run(codis, url, name="base", tag=["july", "v2"]).name_moved == ""
    run(codis, url, tag="july")
    assert labels(url) == {1: Labels("base", ("july", "v2")), 2: Labels(None, ("july",))}


@pytest.mark.parametrize("changed", [{}, {"fresh": "again"}, {"concurrency": 3}, {"tag": "x"}])
def test_the_same_evaluation_takes_the_name_of_its_earlier_run(
    codis: str, url: str, changed: dict[str, Any]
) -> None:
    run(codis, url, name="base")
    again = run(codis, url, name="base", **changed)
    assert again.name_moved == "the name 'base' moved from run 1, the same evaluation, to run 2"
    assert labels(url)[2].name == "base"
    assert labels(url)[1].name is None


def test_more_samples_of_the_same_data_are_the_same_evaluation(codis: str, url: str) -> None:
    run(codis, url, name="base", limit=2)
    run(codis, url, name="base")
    assert labels(url)[2].name == "base"


@pytest.mark.parametrize("changed", [{"seed": 1}, {"set": {"cot": False}}, {"limit": 2}])
def test_another_evaluation_with_the_name_is_refused_and_leaves_nothing(
    codis: str, url: str, changed: dict[str, Any]
) -> None:
    run(codis, url, name="base")
    with pytest.raises(UserError, match=r"'base' belongs to run 1, another evaluation: .*runs rename base"):
        run(codis, url, name="base", **changed)
    assert numbers(url) == [1]
    assert labels(url) == {1: Labels("base")}


@pytest.mark.parametrize("bad", [{"name": "12"}, {"name": "results/base"}, {"tag": ["a b"]}])
def test_a_name_or_tag_of_another_form_is_refused_before_the_store_is_made(
    codis: str, url: str, bad: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match=r"the name of a run|a tag"):
        run(codis, url, **bad)
    assert not Path(url).exists()


class InterruptedRunError(Exception):
    pass


def _interrupt(
    self: ChanceBaseline, requests: Sequence[Request]
) -> AsyncIterator[tuple[int, Answer | Failure]]:
    raise InterruptedRunError


def test_an_interrupted_run_leaves_the_name_to_the_earlier_run_until_it_is_repeated(
    codis: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(codis, url, name="base")
    with monkeypatch.context() as patch:
        patch.setattr(ChanceBaseline, "answer", _interrupt)
        with pytest.raises(InterruptedRunError):
            run(codis, url, name="base", fresh="again")
    assert labels(url)[1].name == "base"
    run(codis, url, name="base", fresh="again")
    assert labels(url)[3].name == "base"


def test_an_interrupted_run_has_a_new_name_and_gives_it_to_its_repetition(
    codis: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ChanceBaseline, "answer", _interrupt)
        with pytest.raises(InterruptedRunError):
            run(codis, url, name="base")
    assert labels(url)[1].name == "base"
    run(codis, url, name="base")
    assert labels(url)[2].name == "base"


def test_a_run_is_held_while_it_goes_on_and_free_afterwards(
    codis: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[set[int]] = []
    answer = ChanceBaseline.answer

    def watched(
        self: ChanceBaseline, requests: Sequence[Request]
    ) -> AsyncIterator[tuple[int, Answer | Failure]]:
        store = Store.open(url)
        held.append(store.claims.held_runs())
        store.close()
        return answer(self, requests)

    monkeypatch.setattr(ChanceBaseline, "answer", watched)
    asyncio.run(run_evaluation(Spec(task="codis", model="baseline/chance", data=codis, store=url)))
    assert held == [{1}]
    store = Store.open(url)
    assert store.claims.held_runs() == set()
    store.close()


def test_the_runs_of_a_sweep_have_a_name_each_that_begins_with_that_of_the_sweep(
    codis: str, url: str
) -> None:
    options: dict[str, Any] = {"data": codis, "store": url, "name": "cot", "tag": "july"}
    sightline.sweep("codis", model="baseline/chance", set={"cot": [True, False]}, **options)
    assert [(one.name, one.tags) for one in labels(url).values()] == [
        ("cot:chance_cot=on", ("july",)),
        ("cot:chance_cot=off", ("july",)),
    ]


def test_a_sweep_with_a_name_of_another_evaluation_is_refused_before_its_first_run(
    codis: str, url: str
) -> None:
    run(codis, url, name="cot:chance_cot=off", seed=7)
    options: dict[str, Any] = {"data": codis, "store": url, "name": "cot"}
    with pytest.raises(UserError, match="belongs to run 1"):
        sightline.sweep("codis", model="baseline/chance", set={"cot": [True, False]}, **options)
    assert numbers(url) == [1]
