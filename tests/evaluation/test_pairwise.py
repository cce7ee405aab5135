"""A judge prefers one of two answers only if it does so in both orders."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image
from scipy.stats import binomtest
from tests.evaluation.test_compare import OPTIONS, outcome

from sightline.engine.client import ClientOptions, ModelClient
from sightline.errors import UserError
from sightline.evaluation.compare import compare
from sightline.evaluation.folder import JudgedRun
from sightline.evaluation.pairwise import (
    AnswerPair,
    JudgedPair,
    Judgements,
    estimate_judging,
    judge_answers,
    pairwise_tables,
)
from sightline.images import read_image
from sightline.metrics.significance import Comparison
from sightline.models.base import Capabilities
from sightline.models.offline import OfflineModel
from sightline.reporting.table import PValue, Value
from sightline.scoring.scorer import Choice
from sightline.types import Answer, Failure, Group, ImageRef, Request

QUALITIES = {"bad": 1, "fair": 2, "good": 3}


class Judge(OfflineModel):
    """Prefers the better answer; in questions that say so the first one, or none that can be read."""

    name = identity = "judge"
    host = "tests"
    capabilities = Capabilities(images=False)

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.texts: list[str] = []

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for place, request in enumerate(requests):
            text = "\n".join(part.text for message in request.messages for part in message.parts)  # type: ignore[union-attr]
            name, _, rest = text.partition("Is this ")[2].partition("?")
            first, second = (
                rest.split(f"Assistant {which}'s Answer]\n")[1].split("\n[The")[0] for which in "AB"
            )
            self.asked.append((name, first, second))
            self.texts.append(text)
            lead = QUALITIES[first.split()[0]] - QUALITIES[second.split()[0]]
            mark = "A" if lead > 0 or "biased" in name else "B" if lead < 0 else "C"
            said = "I cannot say." if "mumbled" in name else f'Not "[[C]]" at once. [[{mark}]]'
            yield place, Failure("permanent", "no") if "broken" in name else Answer(said)


ANSWERS = {
    "plain 1": ("bad", "good"),
    "plain 2": ("good", "fair"),
    "plain 3": ("fair ", "fair"),
    "plain 4": ("fair", "fair  ok"),
    "biased 1": ("bad", "good"),
    "mumbled 1": ("bad", "good"),
    "broken 1": ("bad", "good"),
    "empty": ("bad", ""),
}


def compared(make_result: Any) -> Comparison:
    runs = []
    for side in (0, 1):
        groups = {}
        for name, answers in ANSWERS.items():
            text = answers[side]
            one = replace(
                outcome(name, "v", "1"),
                key=f"{side} {name}",
                response=text,
                status="ok" if text else "empty",
                question=f"Is this {name}?",
                options=("yes", "no"),
                references=("yes",) if name != "plain 1" else (),
            )
            groups[name, 0, ""] = Group(name, 0, name, (one,))
        runs.append(JudgedRun(name=f"run {side}", result=make_result(options=OPTIONS), groups=groups))
    return compare([(runs[0], runs[1])])


def test_a_preference_counts_in_both_orders_only(
    make_result: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, comparison = Judge(), compared(make_result)
    monkeypatch.setattr("sightline.replicas.fleet.resolve", lambda *_: [judge])
    options = ClientOptions(model="baseline/chance", store=str(tmp_path / "s.db"))

    def judged() -> Judgements:
        client = ModelClient(options, {})
        with client.store() as store:
            return asyncio.run(judge_answers(comparison, "judge", client, store))

    found = judged()
    assert {one.pair.other.sample: one.preference for one in found.pairs} == {
        "plain 1": "win",
        "plain 2": "loss",
        "plain 3": "tie",
        "plain 4": "tie",
        "biased 1": "order-dependent",
        "mumbled 1": None,
        "broken 1": None,
    }
    # Each order once, and three times where no verdict can be read; never if a text is missing or equal.
    expected = Counter[tuple[str, str, str]]()
    for name, (base, other) in ANSWERS.items():
        if name not in ("plain 3", "empty"):
            times = 3 if "mumbled" in name else 1
            expected |= {(name, base, other): times, (name, other, base): times}
    assert Counter(judge.asked) == expected
    # Only the first question has no reference.
    assert sum("Reference Answer" not in text for text in judge.texts) == 2
    assert all("?\nA. yes\nB. no\n" in text for text in judge.texts)
    (table,) = pairwise_tables(comparison, found)
    (row,) = table.rows
    assert isinstance(row[1], Value)
    assert row[1].value == pytest.approx(100 * (1 + 3 * 0.5) / 5)
    assert row[3:] == (1, 1, 2, 1, 5, 5)
    assert "1 pairs are order-dependent with the answer shown first preferred twice" in table.notes
    before = len(judge.asked)
    client = ModelClient(options, {})
    with client.store(only_read=True) as store:
        estimate = estimate_judging(comparison, "judge", client, store, None)
    assert (estimate.requests, estimate.to_ask) == (12, 0)
    assert judged() == found
    assert len(judge.asked) == before


class Seeing(Judge):
    """A judge that prefers the second answer where its one image is red."""

    capabilities = Capabilities(images=True)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for place, request in enumerate(requests):
            (file,) = request.images.values()
            assert request.messages[-1].parts[0] == ImageRef(file.path)
            is_red = read_image(file).getpixel((0, 0)) == (255, 0, 0)
            yield place, Answer("[[B]]" if is_red else "[[C]]")


def test_a_judge_sees_the_images_of_the_data_folder(
    make_result: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for side in (0, 1):
        groups = {}
        for name in ("red", "blue"):
            Image.new("RGB", (8, 8), name).save(tmp_path / f"{name}.png")
            one = replace(outcome(name, "v", "1"), response=f"{side}", images=(f"{name}.png",))
            groups[name, 0, ""] = Group(name, 0, name, (one,))
        runs.append(JudgedRun(name=f"run {side}", result=make_result(options=OPTIONS), groups=groups))
    comparison = compare([(runs[0], runs[1])])

    def judged(judge: Judge, folder: Path | None) -> Judgements:
        monkeypatch.setattr("sightline.replicas.fleet.resolve", lambda *_: [judge])
        client = ModelClient(ClientOptions(model="baseline/chance", store=str(tmp_path / "s.db")), {})
        with client.store() as store:
            return asyncio.run(
                judge_answers(comparison, "judge", client, store, None if folder is None else str(folder))
            )

    found = judged(Seeing(), tmp_path)
    assert {one.pair.other.sample: one.preference for one in found.pairs} == {
        "red": "order-dependent",
        "blue": "tie",
    }
    assert not any("does not see" in note for note in pairwise_tables(comparison, found)[0].notes)
    with pytest.raises(UserError, match="expected --data with the data folder of the runs"):
        judged(Seeing(), tmp_path / "elsewhere")
    with pytest.raises(UserError, match="this judge does not accept images"):
        judged(Judge(), tmp_path)


def _judgements(made: Sequence[tuple[str, tuple[Choice, Choice]]]) -> Judgements:
    pairs = [
        JudgedPair(AnswerPair(cluster, outcome(str(n), "v", "0"), outcome(str(n), "v", "1")), choices)
        for n, (cluster, choices) in enumerate(made)
    ]
    return Judgements("judge", pairs, 0, {})


CHOSEN: list[tuple[Choice, Choice]] = [
    ("second", "first"),
    ("first", "second"),
    ("tie", "tie"),
    ("first", "first"),
]
"""The choices in both orders of a win, a loss, a tie and a pair that depends on the order."""


def test_the_test_of_one_pair_a_cluster_is_the_binomial_test_of_wins_and_losses(make_result: Any) -> None:
    comparison = compared(make_result)
    for wins, losses, others in ((9, 2, 4), (5, 5, 1), (3, 14, 30), (0, 6, 0)):
        kinds = [0] * wins + [1] * losses + [2, 3] * others
        made = [(f"c{n}", CHOSEN[kind]) for n, kind in enumerate(kinds)]
        (table,) = pairwise_tables(comparison, _judgements(made))
        p = table.rows[0][2]
        assert isinstance(p, PValue)
        assert p.value == pytest.approx(binomtest(wins, wins + losses).pvalue)


def test_labels_are_those_of_all_pairs_also_if_the_judge_decides_none(make_result: Any) -> None:
    made = [
        JudgedPair(AnswerPair(style, outcome(style, style, "0"), outcome(style, style, "1")), choices)
        for style, choices in (("oil", CHOSEN[0]), ("ink", (None, None)))
    ]
    comparison = compared(make_result)
    for pairs, expected in (
        (made, {"all": 1, "style=ink": 0, "style=oil": 1}),
        (made[1:], {"all": 0, "style=ink": 0}),
    ):
        (table,) = pairwise_tables(comparison, Judgements("judge", pairs, 0, {}), "style")
        counts = [column.key for column in table.columns].index("pairs")
        assert {row[0]: row[counts] for row in table.rows} == expected


def test_pairs_without_a_verdict_are_in_the_headline_and_equal_texts_alone_show_nothing(
    make_result: Any,
) -> None:
    same = JudgedPair(AnswerPair("same", outcome("a", "v", "1"), outcome("a", "v", "1")), CHOSEN[2])
    silent = JudgedPair(AnswerPair("x", outcome("b", "v", "0"), outcome("b", "v", "1")), (None, "first"))
    tie = silent._replace(choices=CHOSEN[2])
    shown = "No preference between run 0 and run 1 is shown (17 pairs)"
    for pairs, rate, lead in (
        ([same] * 16 + [silent] * 3, None, "3 of 3 different pairs have no verdict"),
        ([same] * 16 + [silent] * 2 + [tie], 50, f"{shown}; 2 of 3 different pairs have no verdict"),
        ([same] * 16 + [tie], 50, shown),
    ):
        (table,) = pairwise_tables(compared(make_result), Judgements("judge", pairs, 0, {}))
        value = table.rows[0][1]
        assert isinstance(value, Value)
        assert (value.value, table.lead) == (rate, lead)


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("Which colour? Option: A:Red; B:Light blue;", "Which colour? Option: A:Red; B:Light blue;"),
        ("Which colour?", "Which colour?\nA. red\nB. light blue"),
    ],
)
def test_a_judge_sees_the_options_once(question: str, shown: str) -> None:
    one = replace(outcome("a", "v", "1"), question=question, options=("red", "light blue"))
    assert AnswerPair("a", one, one).question == shown


def test_of_100_intervals_of_the_win_rate_95_hold_the_true_one(make_result: Any) -> None:
    """Clusters of one to four pairs that are judged alike; a fifth depends on the order, a tenth are ties."""
    comparison, generator = compared(make_result), np.random.default_rng(4)
    held = 0
    trials = 400
    for _ in range(trials):
        made = []
        for cluster in range(40):
            chance = generator.beta(3, 1.5)  # its mean is 2/3
            for _ in range(generator.integers(1, 5)):
                kind = generator.choice(4, p=[0.7 * chance, 0.7 * (1 - chance), 0.1, 0.2])
                made.append((f"c{cluster}", CHOSEN[kind]))
        (table,) = pairwise_tables(comparison, _judgements(made))
        rate = table.rows[0][1]
        assert isinstance(rate, Value)
        assert rate.low is not None
        assert rate.high is not None
        held += rate.low <= 100 * (0.7 * 2 / 3 + 0.3 / 2) <= rate.high
    assert binomtest(held, trials, 0.95).pvalue > 0.01
