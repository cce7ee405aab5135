"""From groups to numbers: subsets, denominators, intervals, undecided verdicts, judges and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from scipy.stats import binomtest, ttest_1samp

from sightline.metrics.choice import ACCURACY, ERROR, IMAGE_GAIN
from sightline.metrics.paired import ACC_P, ACC_P_IMAGES, ACC_Q, CONTEXT_AWARENESS
from sightline.metrics.statistics import TOO_FEW, Interval, ratio_intervals
from sightline.metrics.tally import NO_ANSWER, tally
from sightline.types import (
    PERCENT,
    Group,
    Labels,
    Metric,
    MetricValue,
    Outcome,
    Term,
    Usage,
    Verdict,
    VerdictName,
)


def test_a_part_of_the_humans_is_no_further_judge() -> None:
    """One skipped an answer: the others are its majority."""
    names = [
        *("majority of Anna, Ben, Cleo", "majority of Anna, Ben", "majority of Ben, Cleo", "Cleo"),
        *("Anna, Cleo", "rules"),
    ]
    groups = [
        structs.replace(one, outcomes=tuple(structs.replace(outcome, judge=name) for outcome in one.outcomes))
        for one, name in zip(one_each(["right"] * len(names)), names, strict=True)
    ]
    assert tally(groups, [ACC_Q])[0].judge == "majority of Anna, Ben, Cleo, rules"


def score(group: Group) -> Iterator[Term]:
    for outcome in group:
        yield Term(outcome.scores["s"], 1)


def by_style(group: Group) -> Iterator[Term]:
    for outcome in group:
        yield Term(outcome.right, 1, {"style": outcome.variant})


PLAIN: dict[str, Any] = {"meaning": "", "better": "higher", "range": PERCENT, "source": ""}

SCORE = Metric(name="score", terms=score, unit="number", judged=None, **PLAIN)
BY_STYLE = Metric(name="by_style", terms=by_style, **PLAIN)


def outcome(
    verdict: VerdictName, *, labels: Labels | None = None, key: str = "", s: float = 0.0, judge: str = "rules"
) -> Outcome:
    return Outcome(
        sample="0",
        variant="candy",
        draw=0,
        key=key,
        labels=labels or {},
        response=key,
        status="ok",
        finish_reason="stop",
        usage=Usage(),
        verdict=verdict,
        references=("A",),
        judge=judge,
        scores={"s": s},
    )


def group(*verdicts: VerdictName, cluster: str = "", labels: Labels | None = None) -> Group:
    return Group("0", 0, cluster, tuple(outcome(verdict, labels=labels) for verdict in verdicts))


def one_each(verdicts: Sequence[VerdictName]) -> list[Group]:
    return [group(verdict, cluster=str(place)) for place, verdict in enumerate(verdicts)]


def subset(values: Sequence[MetricValue], name: str) -> MetricValue:
    [found] = [value for value in values if value.subset == name]
    return found


def test_a_share_is_a_percentage_of_what_counts() -> None:
    [value] = tally(one_each(["right", "right", "wrong"]), [ACCURACY])
    assert (value.metric, value.subset, value.unit) == ("accuracy", "all", "percent")
    assert (value.value, value.n, value.clusters) == (200 / 3, 3, 3)
    assert isinstance(value.n, int)


def test_a_metric_in_numbers_is_not_scaled() -> None:
    scores = [0.25, 0.5] * 10
    groups = [Group("0", 0, str(place), (outcome("right", s=s),)) for place, s in enumerate(scores)]
    [value] = tally(groups, [SCORE])
    expected = ttest_1samp(scores, 0).confidence_interval()
    assert (value.value, value.unit, value.interval) == (0.375, "number", "wilson")
    assert (value.low, value.high) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_subsets_follow_all_by_the_first_appearance_of_the_label_and_then_by_value() -> None:
    groups = [
        group("right", cluster="1", labels={"domain": "Life", "rhetoric": ("Symbolism", "Metaphor")}),
        group("wrong", cluster="2", labels={"domain": "Art", "rhetoric": ("Metaphor",), "age": "new"}),
    ]
    values = tally(groups, [ACCURACY, ERROR])
    assert [value.metric for value in values] == ["accuracy"] * 6 + ["error"] * 6
    assert [value.subset for value in values[:6]] == [value.subset for value in values[6:]]
    assert [(value.subset, value.value, value.n) for value in values[:6]] == [
        ("all", 50, 2),
        ("domain=Art", 0, 1),
        ("domain=Life", 100, 1),
        ("rhetoric=Metaphor", 50, 2),
        ("rhetoric=Symbolism", 100, 1),
        ("age=new", 0, 1),
    ]


def test_a_term_with_labels_of_its_own_counts_under_these() -> None:
    outcomes = (outcome("right"), structs.replace(outcome("wrong"), variant="udnie"))
    groups = [
        structs.replace(group("right", labels={"task": "mask"}), outcomes=outcomes),
        group("right", labels={"task": "mask"}),
    ]
    values = tally(groups, [BY_STYLE, ACCURACY])
    assert [(value.metric, value.subset, value.n) for value in values] == [
        ("by_style", "all", 3),
        ("by_style", "style=candy", 2),
        ("by_style", "style=udnie", 1),
        ("accuracy", "all", 3),
        ("accuracy", "task=mask", 1),
    ]


def test_a_subset_in_which_nothing_counts_is_null_with_the_reason() -> None:
    groups = [group("right", labels={"split": "dev"}), group("unscored", labels={"split": "test"})]
    value = subset(tally(groups, [ACCURACY]), "split=test")
    assert (value.value, value.n, value.clusters, value.low, value.high) == (None, 0, 0, None, None)
    assert value.reason == ACCURACY.absent


def test_a_metric_over_no_groups_is_null() -> None:
    [value] = tally([], [ACCURACY])
    assert (value.subset, value.value, value.n, value.reason) == ("all", None, 0, NO_ANSWER)
    assert tally([group("right")], []) == []


def test_a_partner_without_terms_is_not_reported_as_missing() -> None:
    hidden = structs.replace(group("right"), partners={"no-image": (outcome("unscored"),)})
    assert tally([hidden], [IMAGE_GAIN])[0].reason == IMAGE_GAIN.absent
    missing = tally([group("right")], [IMAGE_GAIN])[0].reason
    assert missing == "needs a run of setting 'no-image' with the same model and the same options"


def test_groups_that_share_a_image_are_one_cluster() -> None:
    pairs = [(group("right", cluster=name), group("wrong", cluster=name)) for name in "abcdefghij"]
    [value] = tally([one for pair in pairs for one in pair], [ACCURACY])
    assert (value.n, value.clusters, value.interval) == (20, 10, "wilson")
    assert value.low == pytest.approx(50 * (1 - binomtest(0, 10).proportion_ci(method="wilson").high))


def test_clusters_that_all_agree_have_an_interval_with_a_width() -> None:
    groups = [group("wrong", cluster=cluster) for cluster in 2 * "abcdefghij"]
    [value] = tally(groups, [ACCURACY])
    _, high = binomtest(0, 10).proportion_ci(method="wilson")
    assert (value.value, value.low, value.interval) == (0, 0, "wilson")
    assert value.high == pytest.approx(100 * high)


def test_the_interval_of_single_units_is_wilsons() -> None:
    verdicts: list[VerdictName] = ["right", "wrong", "right"]
    [value] = tally(one_each(4 * verdicts), [ACCURACY])
    expected = binomtest(8, 12).proportion_ci(method="wilson")
    assert (value.low, value.high) == pytest.approx((100 * expected.low, 100 * expected.high))


def test_a_difference_is_never_taken_for_a_share() -> None:
    def one(shown: VerdictName, hidden: VerdictName, cluster: str, label: str) -> Group:
        labelled = group(shown, cluster=cluster, labels={"half": label})
        return structs.replace(labelled, partners={"no-image": (outcome(hidden),)})

    groups = [one("right", "wrong", str(number), "up") for number in range(12)]
    [low] = [value.low for value in tally(groups, [IMAGE_GAIN]) if value.subset == "half=up"]
    share = binomtest(12, 12).proportion_ci(method="wilson").low
    assert low == pytest.approx(100 * (2 * share - 1))


def test_one_cluster_has_no_interval_but_a_reason() -> None:
    [value] = tally([group("right", cluster="a"), group("wrong", cluster="a")], [ACCURACY])
    assert (value.value, value.low, value.high, value.interval) == (50, None, None, None)
    assert value.reason == TOO_FEW


def test_a_subsets_interval_is_that_of_the_ratio_over_its_clusters() -> None:
    pairs: list[list[VerdictName]] = [["wrong", "wrong"], ["right", "wrong"], ["right", "right"]]
    generator = np.random.default_rng(0)
    sums = generator.integers(0, 3, (40, 2)).astype(np.float64)
    groups = [
        group(*pairs[int(own)], cluster=str(cluster), labels={"half": half})
        for cluster, row in enumerate(sums)
        for half, own in zip("ab", row, strict=True)
    ]
    values = tally(groups, [ACC_Q])
    for half, own in zip("ab", ratio_intervals(sums.T, np.full((2, 40), 2.0), [(0, 1)] * 2), strict=True):
        value = subset(values, f"half={half}")
        assert isinstance(own, Interval)
        assert (value.low, value.high) == pytest.approx((100 * own.low, 100 * own.high))


def test_undecided_verdicts_add_the_values_without_them_and_if_right() -> None:
    groups = one_each(["right", "wrong", "wrong", "undecided"])
    accuracy, error = tally(groups, [ACCURACY, ERROR])
    assert (accuracy.value, accuracy.n) == (25, 4)
    assert accuracy.value_decided == pytest.approx(100 / 3)
    assert accuracy.value_if_right == 50
    assert (error.value_decided, error.value_if_right) == (None, None)


def test_where_all_is_decided_there_is_no_second_value() -> None:
    [value] = tally(one_each(["right", "wrong"]), [ACCURACY])
    assert (value.value_decided, value.value_if_right) == (None, None)


def test_once_a_verdict_is_undecided_every_subset_shows_both_sides() -> None:
    groups = [group("right", labels={"half": "a"}), group("undecided", labels={"half": "b"})]
    values = tally(groups, [ACCURACY])
    assert [(v.subset, v.value, v.value_decided, v.value_if_right) for v in values] == [
        ("all", 50, 100, 100),
        ("half=a", 100, 100, 100),
        ("half=b", 0, None, 100),
    ]


def test_a_pair_with_an_undecided_half_is_no_decided_pair() -> None:
    acc_p, acc_q = tally([group("right", "undecided"), group("right", "right")], [ACC_P, ACC_Q])
    assert (acc_p.value, acc_p.value_decided, acc_p.value_if_right) == (50, 100, 100)
    assert (acc_q.value, acc_q.value_decided, acc_q.value_if_right) == (75, 100, 100)


def test_a_verdict_that_is_undecided_in_the_partner_is_left_out_there() -> None:
    with_images = (outcome("right"), outcome("undecided"))
    captioned = structs.replace(group("right", "right"), partners={"default": with_images})
    acc_p, images = tally([captioned], [ACC_P, ACC_P_IMAGES])
    assert (acc_p.value, acc_p.value_decided, acc_p.value_if_right) == (100, 100, 100)
    assert (images.value, images.value_decided, images.value_if_right) == (0, None, 100)


def test_a_value_names_its_judges() -> None:
    def same(judge: str) -> Verdict:
        return Verdict(
            targets=("x", "y"),
            question="same_meaning",
            scorer="equality",
            judge=judge,
            kind="model",
            verdict="right",
        )

    pair = (outcome("right", key="x", judge="gpt-4"), outcome("wrong", key="y", judge="ann"))
    groups = [Group("0", 0, "", pair, judgements=(same("minilm"),)), Group("1", 0, "", pair)]
    acc_p, awareness, error = tally(groups, [ACC_P, CONTEXT_AWARENESS, ERROR])
    assert (acc_p.judge, awareness.judge, error.judge) == ("ann, gpt-4", "minilm", None)


def test_groups_are_read_once_and_in_a_stream() -> None:
    stream = iter(one_each(["right", "wrong"]))
    assert [value.n for value in tally(stream, [ACCURACY, ERROR])] == [2, 2]
    assert next(stream, None) is None


VERDICTS = st.sampled_from(["right", "wrong", "miss", "undecided", "error"])
GROUPS = st.lists(
    st.builds(
        lambda verdicts, cluster, label: group(*verdicts, cluster=cluster, labels={"category": label}),
        st.lists(VERDICTS, min_size=1, max_size=3),
        st.sampled_from("abcdef"),
        st.sampled_from("xyz"),
    ),
    min_size=1,
    max_size=20,
)


@given(GROUPS)
@settings(max_examples=50, deadline=None)
def test_a_value_lies_in_its_interval_and_between_its_two_sides(groups: list[Group]) -> None:
    for value in tally(groups, [ACCURACY, ACC_P, ACC_Q]):
        if value.value is None:
            assert (value.n, value.low, value.high) == (0, None, None)
            assert value.reason
            continue
        assert (value.reason is None) == (value.low is not None)
        assert value.value_if_right is None or value.value <= value.value_if_right
        if value.low is not None and value.high is not None:
            assert 0 <= value.low <= value.value <= value.high <= 100


SCORED = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("xyz"), st.sampled_from([0.0, 1.0, 0.5, 1000.25])),
    min_size=1,
    max_size=40,
)


@given(SCORED, st.integers(1, 9), st.integers(1, 30))
@settings(deadline=None)
def test_values_are_those_of_the_sums_of_clusters_however_terms_are_held(
    scores: list[tuple[str, str, float]], chunk: int, block: int
) -> None:
    groups = [
        Group("0", 0, cluster, (outcome("right", s=s, labels={"half": half}),)) for cluster, half, s in scores
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sightline.metrics.tally.TERMS_PER_CHUNK", chunk)
        patch.setattr("sightline.metrics.tally.CELLS_PER_BLOCK", block)
        values = tally(groups, [structs.replace(SCORE, range=(None, None), graded=True)])
    assert [value.subset for value in values] == [
        "all",
        *(f"half={h}" for h in sorted({h for _, h, _ in scores})),
    ]
    for value in values:
        own = [(cluster, s) for cluster, half, s in scores if value.subset in ("all", f"half={half}")]
        clusters = sorted({cluster for cluster, _ in own})
        sums = np.array([[sum(s for name, s in own if name == cluster) for cluster in clusters]])
        counts = np.array([[float(sum(name == cluster for name, _ in own)) for cluster in clusters]])
        assert (value.n, value.clusters) == (len(own), len(clusters))
        assert value.value == pytest.approx(sums.sum() / counts.sum(), rel=1e-12)
        [expected] = ratio_intervals(sums, counts, [(None, None)], graded=True)
        if isinstance(expected, str):
            assert value.reason == expected
        else:
            assert (value.low, value.high) == pytest.approx(expected[:2], rel=1e-9)


@given(GROUPS)
@settings(max_examples=50, deadline=None)
def test_the_subsets_of_a_partition_add_up_to_all(groups: list[Group]) -> None:
    for metric in (ACCURACY, ACC_P):
        whole, *parts = tally(groups, [metric])
        assert sum(part.n for part in parts) == whole.n
        hits = sum(part.value * part.n for part in parts if part.value is not None)
        assert hits == pytest.approx((whole.value or 0) * whole.n)


@given(GROUPS)
@settings(max_examples=25, deadline=None)
def test_repeating_every_probe_narrows_no_interval(groups: list[Group]) -> None:
    once = tally(groups, [ACCURACY])
    twice = tally([group for group in groups for _ in range(2)], [ACCURACY])
    for one, two in zip(once, twice, strict=True):
        assert (one.value, one.clusters, 2 * one.n) == (two.value, two.clusters, two.n)
        if one.n > one.clusters and one.low is not None:
            assert (one.low, one.high) == pytest.approx((two.low, two.high))
