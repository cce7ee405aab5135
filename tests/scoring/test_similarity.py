"""Similarity from vectors: nearest reference, every pair, empty and failed answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.scoring.similarity import cosines, similarity
from sightline.types import Group, Outcome, Usage


def outcome(nth: int, said: str | None, references: tuple[str, ...] = ("orange", "fruit")) -> Outcome:
    return Outcome(
        sample="a",
        variant=f"m{nth}",
        draw=0,
        key=str(nth),
        labels={},
        response=said or "",
        status="error" if said is None else "ok" if said else "empty",
        finish_reason="",
        usage=Usage(),
        verdict="unscored",
        references=references,
    )


def read(*said: str | None) -> Group:
    scorer = similarity("e", str.strip)
    group = Group("a", 0, "a", tuple(outcome(nth, text) for nth, text in enumerate(said)))
    texts = scorer.texts(group)
    assert all(texts)
    vectors = np.random.default_rng(0).normal(size=(len(texts), 8)).astype(np.float32)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    by_text = dict(zip(texts, unit, strict=True))
    found = scorer.read(
        group, np.array([by_text[text] for text in texts], dtype=np.float32), [0.0] * len(texts)
    )
    for one in found:
        if one.status == "ok" and one.response.strip():
            nearest = max(float(by_text[one.response.strip()] @ by_text[name]) for name in one.references)
            assert one.scores["s_gt"] == pytest.approx(100 * nearest, abs=1e-4)
    for verdict in found.judgements:
        first, second = (found.outcomes[int(key)].response.strip() for key in verdict.targets)
        expected = float(by_text[first] @ by_text[second]) if first and second else 0.0
        assert verdict.value == pytest.approx(expected, abs=1e-6)
        assert verdict.verdict == ("right" if expected > 0.7 else "wrong")
    return found


def test_every_pair_has_a_similarity_and_every_answer_its_nearest_reference() -> None:
    assert len(read("an orange", "a lemon", "an orange", "a ball").judgements) == 6


@given(st.integers(0, 2**32 - 1), st.integers(2, 400))
def test_equal_texts_have_a_similarity_of_exactly_1_and_none_leaves_the_range(seed: int, size: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(8, size)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = cosines(vectors @ vectors.T)
    assert (np.diag(found) == 1).all()
    assert (np.abs(found) <= 1).all()
    assert found == pytest.approx(vectors.astype(float) @ vectors.astype(float).T, abs=2e-6)


def test_an_empty_answer_is_similar_to_nothing() -> None:
    found = read("an orange", "", "  ")
    assert [verdict.value for verdict in found.judgements] == [0.0, 0.0, 0.0]
    assert [one.scores["s_gt"] for one in found.outcomes[1:]] == [0.0, 0.0]


def test_an_answer_that_failed_has_no_similarity() -> None:
    found = read("an orange", None, "a lemon")
    assert [verdict.targets for verdict in found.judgements] == [("0", "2")]
    assert found.outcomes[1].scores == {}


def test_a_group_of_nothing_but_failures_is_read() -> None:
    assert read(None, None).judgements == ()


def test_answers_without_references_are_compared_all_the_same() -> None:
    scorer = similarity("e", str.strip)
    group = Group("a", 0, "a", tuple(replace(outcome(n, "x"), references=("",)) for n in range(2)))
    assert scorer.texts(group) == ["x", "x"]
    found = scorer.read(group, np.ones((2, 1), dtype=np.float32), [0.0, 0.0])
    assert [verdict.value for verdict in found.judgements] == [1.0]
    assert found.outcomes[0].scores == {}
