"""Agreement of two evaluators and of raters with their majority, as Tables 7 and 8 of CODIS define them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from sightline.errors import UserError
from sightline.metrics import agreement as metric
from sightline.metrics.agreement import (
    Rater,
    VerdictCoder,
    VerdictCodes,
    item_id,
    levels,
    majority,
)
from sightline.types import MetricValue, Verdict, VerdictName

RATERS = ("ann", "ben", "cem", "dot")


Clusters = Mapping[tuple[str, ...], str]


def coded(verdicts: Sequence[Verdict], clusters: Clusters) -> VerdictCodes:
    """Every verdict as a group of its own."""
    coder = VerdictCoder()
    for one in verdicts:
        coder.add([one], clusters.get(one.targets))
    return coder.codes()


def raters(verdicts: Sequence[Verdict]) -> list[Rater]:
    return list(dict.fromkeys(Rater(one.judge, one.kind) for one in verdicts))


def agreement(
    first: Sequence[Verdict], second: Sequence[Verdict], clusters: Clusters | None = None
) -> MetricValue:
    return metric.agreement(coded([*first, *second], clusters or {}), *raters([*first, *second]))


def agreement_with_humans(humans: Sequence[Verdict], model: Sequence[Verdict]) -> MetricValue:
    return metric.agreement_with_humans(coded([*humans, *model], {}), raters(humans), *raters(model))


def self_agreement(verdicts: Sequence[Verdict]) -> list[MetricValue]:
    return metric.self_agreement(coded(verdicts, {}), *raters(verdicts))


def human_consistency(verdicts: Sequence[Verdict]) -> MetricValue:
    return metric.human_consistency(coded(verdicts, {}), raters(verdicts))


def verdict(item: int | str, name: VerdictName, judge: str = "ann", *, draw: int = 0) -> Verdict:
    return Verdict(
        targets=(str(item),),
        question="correct",
        scorer="human",
        judge=judge,
        kind="human",
        verdict=name,
        draw=draw,
    )


def ratings(item: int, votes: str) -> list[Verdict]:
    """One letter a rater, r or w; a fifth letter is eve's."""
    names: dict[str, VerdictName] = {"r": "right", "w": "wrong"}
    return [verdict(item, names[vote], rater) for rater, vote in zip((*RATERS, "eve"), votes, strict=False)]


def test_agreement_is_the_share_of_common_answers_read_alike() -> None:
    humans = [verdict(item, "right") for item in range(13)]
    model = [verdict(item, "right" if item < 8 else "wrong", "gpt-4") for item in range(12)]
    found = agreement(humans, model)
    assert found.value == pytest.approx(200 / 3)
    assert (found.n, found.clusters) == (12, 12)
    assert (found.metric, found.judge, found.interval) == ("agreement", "ann, gpt-4", "wilson")
    expected = binomtest(8, 12).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((100 * expected.low, 100 * expected.high))


@pytest.mark.parametrize("name", ["undecided", "error", "unscored"])
def test_an_answer_that_one_judge_leaves_undecided_does_not_count(name: VerdictName) -> None:
    assert agreement([verdict(1, "right")], [verdict(1, name, "gpt-4")]).n == 0


@pytest.mark.parametrize("name", ["miss", "refused"])
def test_a_miss_is_decided_and_not_right(name: VerdictName) -> None:
    assert agreement([verdict(1, "wrong")], [verdict(1, name, "rules")]).value == 100
    assert agreement([verdict(1, "right")], [verdict(1, name, "rules")]).value == 0


def test_a_different_question_on_the_same_answer_is_not_common() -> None:
    other = Verdict(
        targets=("1",),
        question="same_meaning",
        scorer="equality",
        judge="gpt-4",
        kind="model",
        verdict="right",
    )
    found = agreement([verdict(1, "right")], [other])
    assert (found.value, found.n, found.reason) == (None, 0, "no answer was decided by both")


def test_agreement_with_humans_covers_all_answers_that_both_evaluated() -> None:
    """CODIS 5.3: the share of queries with Eval_h = Eval_g, each of which is right or not right."""
    humans = [
        *ratings(1, "rrr"),
        *ratings(2, "rrw"),
        *ratings(3, "www"),
        *ratings(4, "rw"),
        *ratings(5, "rrr"),
    ]
    model: dict[int, VerdictName] = {1: "right", 2: "undecided", 3: "undecided", 4: "right", 6: "right"}
    found = agreement_with_humans(humans, [verdict(item, name, "gpt-4") for item, name in model.items()])
    # 1 and 3 agree, 2 does not; humans are tied on 4, the model did not read 5, humans did not rate 6.
    assert found.value == pytest.approx(200 / 3)
    assert (found.metric, found.subset, found.n) == ("agreement_with_humans", "all", 3)
    assert found.judge == "ann, ben, cem, gpt-4"


def test_the_majority_of_a_judges_repeats_counts() -> None:
    human = [verdict(item, "right") for item in (1, 2, 3)]
    repeats: dict[int, tuple[VerdictName, ...]] = {
        1: ("wrong", "right", "right"),
        2: ("right", "wrong", "refused"),
        3: ("right", "wrong", "undecided"),
    }
    repeated = [
        verdict(item, name, "gpt-4", draw=draw)
        for item, names in repeats.items()
        for draw, name in enumerate(names)
    ]
    found = agreement(human, repeated)
    assert (found.value, found.n) == (50, 2)


def test_of_several_verdicts_of_one_draw_the_first_counts() -> None:
    again = [verdict(1, "right", "gpt-4"), verdict(1, "wrong", "gpt-4")]
    assert agreement([verdict(1, "right")], again).value == 100


def test_a_judge_agrees_with_itself_where_all_repeats_are_equal() -> None:
    repeats: dict[int, tuple[VerdictName, ...]] = {
        1: ("right", "right", "right"),
        2: ("wrong", "refused", "miss"),
        3: ("undecided", "undecided", "undecided"),
        4: ("right", "right", "undecided"),
        5: ("right", "error", "error"),
    }
    verdicts = [
        verdict(item, name, "gpt-4", draw=draw)
        for item, names in repeats.items()
        for draw, name in enumerate(names)
    ]
    share, alpha = self_agreement(verdicts)
    assert (share.metric, share.value, share.n, share.judge) == ("self_agreement", 75, 4, "gpt-4")
    # krippendorff.alpha(value_counts=[[0,0,3],[3,0,0],[0,3,0],[0,1,2]], level_of_measurement="nominal")
    observed, expected = 4 / 6, 12 * 11 - (3 * 2 + 4 * 3 + 5 * 4)
    assert alpha.metric == "self_alpha"
    assert alpha.value == pytest.approx(1 - observed * 3 / 2 * 11 / expected * 2)


def test_a_judge_that_was_asked_once_has_no_agreement_with_itself() -> None:
    assert self_agreement([verdict(1, "right", "gpt-4"), verdict(2, "wrong", "gpt-4")]) == []


def test_answers_about_one_image_are_one_cluster() -> None:
    humans = [verdict(item, "right") for item in range(20)]
    clusters: dict[tuple[str, ...], str] = {(str(item),): f"image {item // 2}" for item in range(20)}
    found = agreement(humans, [verdict(item, "right", "gpt-4") for item in range(20)], clusters=clusters)
    assert (found.n, found.clusters, found.interval, found.high) == (20, 10, "wilson", 100)
    assert found.low == pytest.approx(100 * binomtest(10, 10).proportion_ci(method="wilson").low)


def test_the_printed_agreements_are_shares_of_706_queries(shared: Path) -> None:
    # All but one: 13 of 706 would print as 98.2 and 14 as 98.0, never as 98.1.
    for printed in set(_printed(shared, 7, "Agreement")) - {98.1}:
        differing = round(706 * (100 - printed) / 100)
        model = [verdict(item, "wrong" if item < differing else "right", "gpt-4") for item in range(706)]
        found = agreement([verdict(item, "right") for item in range(706)], model)
        assert found.value == pytest.approx(printed, abs=0.0501)


def test_consistency_is_the_raters_mean_agreement_with_their_majority() -> None:
    found = human_consistency([*ratings(1, "rrrr"), *ratings(2, "rrrw"), *ratings(3, "wwww")])
    assert found.value == pytest.approx(100 * 11 / 12)
    assert found.n == 12
    assert found.judge == ", ".join(RATERS)


def test_a_fifth_settles_a_tie_and_does_not_enter_the_mean() -> None:
    found = human_consistency([*ratings(1, "rrrr"), *ratings(2, "rrwwr")])
    assert (found.value, found.n) == (75, 8)
    assert found.judge == ", ".join(RATERS)


def test_a_tie_without_a_fifth_has_no_truth_and_is_reported() -> None:
    found = human_consistency([*ratings(1, "rrrr"), *ratings(2, "rrww")])
    assert (found.value, found.n) == (100, 4)


def test_answers_split_among_the_raters_do_not_enter() -> None:
    alone = [verdict(10 + place, "right", rater) for place, rater in enumerate(RATERS)]
    found = human_consistency([*ratings(1, "rrrw"), *alone])
    assert (found.value, found.n) == (75, 4)


def test_two_possible_fifths_have_to_be_told_apart() -> None:
    verdicts = [verdict(1, "right", "ann"), verdict(1, "wrong", "ben"), verdict(1, "right", "cem")]
    with pytest.raises(UserError, match="ann, cem"):
        human_consistency(verdicts)


def test_consistency_without_verdicts_has_no_value() -> None:
    found = human_consistency([])
    assert (found.value, found.n, found.reason) == (
        None,
        0,
        "no item was decided by all raters",
    )


@pytest.mark.slow
@given(
    st.lists(st.text("rw", min_size=4, max_size=4).filter(lambda votes: votes.count("r") != 2), min_size=1)
)
def test_four_raters_lose_a_quarter_of_an_answer_for_each_who_differs(items: list[str]) -> None:
    verdicts = [given for item, votes in enumerate(items) for given in ratings(item, votes)]
    found = human_consistency(verdicts)
    differing = sum(min(votes.count("r"), votes.count("w")) for votes in items)
    assert found.value == pytest.approx(100 - 100 * differing / (4 * len(items)))


def test_the_printed_consistencies_are_shares_of_400_ratings(shared: Path) -> None:
    for printed in _printed(shared, 8, "Human Consistency"):
        differing = round(400 * (100 - printed) / 100)
        verdicts = [
            given for item in range(100) for given in ratings(item, "rrrw" if item < differing else "rrrr")
        ]
        found = human_consistency(verdicts)
        assert (found.n, found.clusters) == (400, 100)
        assert found.value == pytest.approx(printed, abs=0.0501)


def _printed(shared: Path, table: int, metric: str) -> list[float]:
    rows = json.loads((shared / "data/published/codis.json").read_text())["rows"]
    found = [row["value"] for row in rows if (row["table"], row["metric"]) == (table, metric)]
    assert len(found) == 14
    return found


NAMES: tuple[VerdictName, ...] = ("right", "wrong", "miss", "refused", "undecided", "error", "unscored")
VERDICTS = st.lists(
    st.builds(
        verdict,
        st.integers(0, 9),
        st.sampled_from(NAMES),
        st.sampled_from(["ann", "gpt-4"]),
        draw=st.integers(0, 3),
    ),
    max_size=60,
)


def levels_by_hand(verdicts: Sequence[Verdict], judge: str) -> dict[tuple[str, ...], list[float]]:
    """The levels of the draws of each item, from the verdicts themselves."""
    numbers = {"right": 1.0, "wrong": 0.0, "miss": 0.0, "refused": 0.0, "undecided": 0.5}
    found: dict[tuple[str, ...], dict[int, float]] = {}
    for one in verdicts:
        if one.judge == judge and one.verdict in numbers:
            draws = found.setdefault(one.targets, {})
            if draws.get(one.draw, 0.5) == 0.5:
                draws[one.draw] = numbers[one.verdict]
    return {item: list(draws.values()) for item, draws in found.items()}


@given(VERDICTS)
def test_codes_hold_the_first_decided_verdict_of_each_draw_and_the_majority_of_draws(
    verdicts: list[Verdict],
) -> None:
    expected = {}
    for item, draws in levels_by_hand(verdicts, "ann").items():
        decided = majority(level for level in draws if level != 0.5)
        expected[item_id(item, "correct", "")] = 0.5 if decided is None else decided
    assert levels(one for one in verdicts if one.judge == "ann") == expected


@given(VERDICTS)
def test_agreement_counts_the_items_that_both_judges_decided(verdicts: list[Verdict]) -> None:
    """Other verdicts of the same judges on the same answers may come in later groups."""
    decided = []
    for judge in ("ann", "gpt-4"):
        majorities = {
            item: majority(level for level in draws if level != 0.5)
            for item, draws in levels_by_hand(verdicts, judge).items()
        }
        decided.append({item: one for item, one in majorities.items() if one is not None})
    both = decided[0].keys() & decided[1].keys()
    first, second = ([verdict(-1, "error", judge)] for judge in ("ann", "gpt-4"))
    found = agreement([*first, *second, *verdicts], [])
    same = sum(decided[0][item] == decided[1][item] for item in both)
    assert found.n == found.clusters == len(both)
    assert found.value == (pytest.approx(100 * same / len(both)) if both else None)


@given(VERDICTS)
def test_a_judge_agrees_with_itself_on_items_with_several_decisions(verdicts: list[Verdict]) -> None:
    own = [*[one for one in verdicts if one.judge == "ann"], verdict(-1, "error")]
    repeated = [draws for draws in levels_by_hand(own, "ann").values() if len(draws) > 1]
    found = self_agreement(own)
    assert bool(found) == bool(repeated)
    if found:
        same = sum(len(set(draws)) == 1 for draws in repeated)
        assert found[0].value == pytest.approx(100 * same / len(repeated))


def test_of_the_clusters_of_answers_that_groups_share_the_last_counts() -> None:
    coder = VerdictCoder()
    for number, cluster in enumerate(["a", "b", "b", "c"]):
        coder.add([verdict(number % 3, "right"), verdict(number % 3, "right", "gpt-4")], cluster)
    codes = coder.codes()
    found = metric.agreement(codes, *codes.raters["correct"])
    assert (found.n, found.clusters) == (3, 2)
