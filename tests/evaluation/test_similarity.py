"""Embedding: each distinct text once, remembered, failing aloud."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

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
