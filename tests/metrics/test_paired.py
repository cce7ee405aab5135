"""The metrics of pairs: by hand on single pairs, and all of CODIS's Table 3 from its counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from sightline.metrics import paired
from sightline.metrics.tally import tally
from sightline.types import (
    Group,
    Metric,
    Outcome,
    Usage,
    Verdict,
    VerdictName,
)

PRINTED = {
    "Location and Orientation": "Loc & Ori",
    "Temporal Information": "Temporal",
    "Cultural Background": "Cultural",
    "Attributes": "Attributes",
    "Relationships": "Relationships",
}


def outcome(verdict: VerdictName = "right", key: str = "", **fields: Any) -> Outcome:
    given: dict[str, Any] = {"status": "error" if verdict == "error" else "ok", "response": key} | fields
    return Outcome(
        sample="000",
        variant="",
        draw=0,
        key=key,
        labels={},
        finish_reason="stop",
        usage=Usage(),
        verdict=verdict,
        references=("Up.",),
        **given,
    )


def pair(first: VerdictName, second: VerdictName, **fields: Any) -> Group:
    return Group("000", 0, "p", (outcome(first, "one"), outcome(second, "two")), **fields)


def same_meaning(verdict: VerdictName, *targets: str) -> Verdict:
    return Verdict(
        targets=targets,
        question="same_meaning",
        scorer="equality",
        judge="rules",
        kind="rules",
        verdict=verdict,
    )


def terms(metric: Metric, group: Group) -> list[tuple[float, float]]:
    return [(term.sum, term.count) for term in metric.terms(group)]


def test_a_pair_counts_only_when_both_answers_are_right() -> None:
    assert terms(paired.ACC_P, pair("right", "right")) == [(1, 1)]
    assert terms(paired.ACC_P, pair("right", "wrong")) == [(0, 1)]
    assert terms(paired.ACC_Q, pair("right", "wrong")) == [(1, 2)]


@pytest.mark.parametrize("verdict", ["wrong", "miss", "undecided", "refused", "error"])
def test_whatever_is_not_right_stays_in_the_count_as_not_right(verdict: VerdictName) -> None:
    assert terms(paired.ACC_P, pair("right", verdict)) == [(0, 1)]
    assert terms(paired.ACC_Q, pair("right", verdict)) == [(1, 2)]


def test_an_incomplete_pair_counts_as_a_query_only() -> None:
    half = Group("000", 0, "p", (outcome("right"),))
    assert terms(paired.ACC_P, half) == []
    assert terms(paired.ACC_Q, half) == [(1, 1)]
    assert terms(paired.CONTEXT_AWARENESS, half) == terms(paired.CONTEXT_AWARENESS_LEFT_OUT, half) == []


def test_what_has_no_reference_is_not_scored() -> None:
    failed = structs.replace(outcome("error"), references=())
    group = Group("000", 0, "p", (failed, outcome("unscored")))
    assert terms(paired.ACC_P, group) == terms(paired.ACC_Q, group) == []


@pytest.mark.parametrize(("verdict", "different"), [("right", 0), ("wrong", 1)])
@pytest.mark.parametrize("targets", [("one", "two"), ("two", "one")])
def test_awareness_is_answering_differently_in_meaning(
    verdict: VerdictName, different: int, targets: tuple[str, str]
) -> None:
    group = pair("right", "right", judgements=(same_meaning(verdict, *targets),))
    assert terms(paired.CONTEXT_AWARENESS, group) == [(different, 1)]
    assert terms(paired.CONTEXT_AWARENESS_LEFT_OUT, group) == [(0, 1)]


@pytest.mark.parametrize(
    "group",
    [
        pair("right", "right"),
        pair("right", "right", judgements=(same_meaning("undecided", "one", "two"),)),
        pair("right", "error", judgements=(same_meaning("wrong", "one", "two"),)),
        pair("error", "error"),
    ],
    ids=["not judged", "undecided", "a half failed", "both failed"],
)
def test_a_pair_about_which_nothing_is_known_is_left_out_and_counted(group: Group) -> None:
    assert terms(paired.CONTEXT_AWARENESS, group) == []
    assert terms(paired.CONTEXT_AWARENESS_LEFT_OUT, group) == [(1, 1)]


def test_the_same_words_and_the_same_answer_need_no_judge() -> None:
    words = Group("0", 0, "p", (outcome(key="one", response="Up."), outcome(key="two", response="Up.")))
    answer = Group("0", 0, "p", (outcome(key="one"), outcome(key="one")))
    assert terms(paired.CONTEXT_AWARENESS, words) == terms(paired.CONTEXT_AWARENESS, answer) == [(0, 1)]


def test_variability_compares_each_query_with_the_answer_without_context() -> None:
    without = (outcome(key="none"), outcome(key="none"))
    group = pair(
        "right",
        "wrong",
        partners={"no-context": without},
        judgements=(same_meaning("wrong", "one", "none"), same_meaning("right", "two", "none")),
    )
    assert terms(paired.OUTPUT_VARIABILITY, group) == [(1, 1), (0, 1)]
    undecided = structs.replace(group, judgements=group.judgements[:1])
    assert terms(paired.OUTPUT_VARIABILITY, undecided) == [(1, 1)]
    assert terms(paired.OUTPUT_VARIABILITY_LEFT_OUT, undecided) == [(0, 1), (1, 1)]


def test_variability_without_its_partner_names_the_setting_that_is_missing() -> None:
    [value] = tally([pair("right", "right")], [paired.OUTPUT_VARIABILITY])
    assert (value.value, value.n) == (None, 0)
    assert value.reason == "needs a run of setting 'no-context' with the same model and the same options"


def test_the_captioned_pairs_are_scored_with_their_images_too() -> None:
    captioned = pair("wrong", "right", partners={"default": (outcome("right"), outcome("right"))})
    assert terms(paired.ACC_P_IMAGES, captioned) == [(1, 1)]
    assert terms(paired.ACC_P, captioned) == [(0, 1)]
    assert terms(paired.ACC_P_IMAGES, pair("right", "right")) == []


SAME = Verdict(
    targets=("same", "same"),
    question="same_meaning",
    scorer="equality",
    judge="rules",
    kind="rules",
    verdict="right",
)


@given(st.lists(st.sampled_from([("right", "wrong"), ("wrong", "right"), ("wrong", "wrong")]), min_size=1))
def test_a_model_that_ignores_the_context_gets_acc_p_0_and_at_most_half_of_acc_q(
    verdicts: list[tuple[VerdictName, VerdictName]],
) -> None:
    # No pair has two equal answers, so one answer to both contexts is right under one of them at most.
    groups = [
        Group(
            str(place), 0, str(place), (outcome(first, "same"), outcome(second, "same")), judgements=(SAME,)
        )
        for place, (first, second) in enumerate(verdicts)
    ]
    metrics = [paired.ACC_P, paired.ACC_Q, paired.CONTEXT_AWARENESS]
    acc_p, acc_q, awareness = (value.value for value in tally(groups, metrics))
    assert acc_p == awareness == 0
    assert acc_q is not None
    assert acc_q <= 50


def test_the_counts_behind_table_3_give_every_printed_cell(shared: Path) -> None:
    records = json.loads((shared / "data/codis/data.json").read_text())
    rows = [
        row
        for row in json.loads((shared / "data/published/codis.json").read_text())["rows"]
        if row["table"] == 3 and row["model"] != "Human" and row["metric"] != "Context Awareness"
    ]
    by_model = {model: list(own) for model, own in groupby(rows, key=lambda row: row["model"])}
    assert len(by_model) == 14
    for own in by_model.values():
        printed = {(row["subset"], row["metric"]): row["value"] for row in own}
        values = tally(_pairs(records, printed), [paired.ACC_P, paired.ACC_Q])
        assert len(values) == 12
        for value in values:
            name = {"acc_p": "Acc_p", "acc_q": "Acc_q"}[value.metric]
            subset = "Overall" if value.subset == "all" else PRINTED[value.subset.removeprefix("category=")]
            assert value.value == pytest.approx(printed[subset, name], abs=0.0501)
        overall = values[0]
        assert (overall.n, overall.clusters, overall.interval) == (353, 216, "wilson")


def _pairs(records: list[dict[str, Any]], printed: dict[tuple[str, str], float]) -> Iterator[Group]:
    """Groups that have each category's printed number of right pairs and right queries."""
    for category, subset in PRINTED.items():
        own = [record for record in records if record["category"] == category]
        both = round(printed[subset, "Acc_p"] * len(own) / 100)
        either = round(printed[subset, "Acc_q"] * 2 * len(own) / 100) - both
        for place, record in enumerate(own):
            first: VerdictName = "right" if place < either else "wrong"
            second: VerdictName = "right" if place < both else "wrong"
            outcomes = (outcome(first, "one"), outcome(second, "two"))
            labelled = tuple(structs.replace(half, labels={"category": category}) for half in outcomes)
            yield Group(record["id"], 0, record["image_id"], labelled)


def test_where_no_judge_decides_equal_words_do_not_stand_for_all_pairs() -> None:
    alike = Group("0", 0, "0", (outcome("wrong", "same"), outcome("wrong", "same")))
    unparsed = Verdict(
        targets=("a", "b"),
        question="same_meaning",
        scorer="equality",
        judge="gpt",
        kind="model",
        verdict="undecided",
    )
    other = Group("1", 0, "1", (outcome("wrong", "a"), outcome("wrong", "b")), judgements=(unparsed,))
    [awareness] = tally([alike, other], [paired.CONTEXT_AWARENESS])
    assert (awareness.value, awareness.n) == (None, 0)
    assert awareness.reason == paired.CONTEXT_AWARENESS.absent
