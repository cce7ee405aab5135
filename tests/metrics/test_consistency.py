"""Consistency of groups: pairs over all, partners under a label, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.benchmarks.groups.benchmark import MASK_METRICS, Groups
from sightline.evaluation.measures import with_text_scores
from sightline.metrics.consistency import consistency_metrics
from sightline.metrics.tally import tally
from sightline.scoring.similarity import pair_verdict
from sightline.types import Group, MetricValue, Outcome, Usage

STYLES = ("candy", "mosaic", "udnie", "grayscale")

Similarities = Mapping[tuple[int, int], float]


def outcome(
    group: str, nth: int, said: str = "x", right: bool = True, draw: int = 0, **labels: str
) -> Outcome:
    return Outcome(
        sample=group,
        variant=STYLES[nth % 4],
        draw=draw,
        key=f"{group}-{nth}-{draw}",
        labels=labels or {"style": STYLES[nth % 4]},
        response=said,
        status="ok" if said else "empty",
        finish_reason="stop",
        usage=Usage(),
        verdict="right" if right else "wrong",
        extracted=said,
        references=("x",),
        scores={"s_gt": 50.0},
    )


def group_of(
    name: str, similar: Similarities, outcomes: Sequence[Outcome] | None = None, size: int = 4
) -> Group:
    outcomes = outcomes or [outcome(name, nth) for nth in range(size)]
    judgements = [pair_verdict(outcomes[i], outcomes[j], value, "e") for (i, j), value in similar.items()]
    return Group(name, 0, name, tuple(outcomes), tuple(judgements))


def values(groups: Sequence[Group], **how: Any) -> dict[tuple[str, str], MetricValue]:
    scored = with_text_scores(groups, Groups(), {})
    return {(m.metric, m.subset): m for m in tally(scored, consistency_metrics(**how))}


def test_con_is_the_share_of_pairs_above_the_threshold_and_s_c_their_mean() -> None:
    similar = {(0, 1): 0.9, (0, 2): 0.7, (0, 3): 0.2, (1, 2): 0.8, (1, 3): 0.4, (2, 3): 1.0}
    found = values([group_of("a", similar)])
    assert found["con", "all"].value == pytest.approx(50)  # 0.7 itself is not above 0.7
    assert found["con", "all"].n == 6
    assert found["s_c", "all"].value == pytest.approx(100 * sum(similar.values()) / 6)


def test_under_a_style_a_response_counts_with_its_mean_over_its_partners() -> None:
    similar = {(0, 1): 0.9, (0, 2): 0.9, (0, 3): 0.2, (1, 2): 0.2, (1, 3): 0.2, (2, 3): 0.2}
    found = values([group_of("a", similar)])
    assert found["con_by_response", "style=candy"].value == pytest.approx(200 / 3)
    assert found["con_by_response", "style=grayscale"].value == 0
    assert found["s_c_by_response", "style=candy"].value == pytest.approx(200 / 3)
    assert found["con_by_response", "style=candy"].n == 1


@given(st.lists(st.lists(st.floats(-1, 1), min_size=6, max_size=6), min_size=1, max_size=5))
def test_the_mean_over_responses_equals_the_mean_over_pairs_in_groups_of_one_size(
    rows: list[list[float]],
) -> None:
    keys = list(combinations(range(4), 2))
    found = values([group_of(str(n), dict(zip(keys, row, strict=True))) for n, row in enumerate(rows)])
    for metric in ("con", "s_c"):
        by_style = [found[f"{metric}_by_response", f"style={style}"] for style in STYLES]
        mean = sum(value.value or 0.0 for value in by_style) / 4
        assert found[metric, "all"].value == pytest.approx(mean, abs=1e-9)
        assert found[metric, "all"].n == 6 * len(rows)


def test_labels_that_the_whole_group_shares_hold_all_its_answers() -> None:
    outcomes = [outcome("a", nth, source="indoor", style=STYLES[nth]) for nth in range(3)]
    found = values([group_of("a", {(0, 1): 1.0, (0, 2): 0.0, (1, 2): 0.0}, outcomes)])
    assert found["con", "source=indoor"].value == pytest.approx(100 / 3)
    assert found["con", "source=indoor"].n == 3
    assert found["failures", "source=indoor"].n == 3


def test_a_pair_without_a_similarity_is_left_out_and_counted() -> None:
    found = values([group_of("a", {(0, 1): 1.0, (0, 2): 0.0, (1, 2): 0.0})])
    assert found["con", "all"].n == 3
    assert found["pairs_left_out", "all"].value == 50
    assert ("con_by_response", "style=grayscale") not in found or found[
        "con_by_response", "style=grayscale"
    ].n == 0


def test_the_shares_of_consistent_right_wrong_mixed_and_inconsistent_pairs_make_the_whole() -> None:
    outcomes = [outcome("a", nth, right=nth < 2) for nth in range(4)]
    similar = {(0, 1): 0.9, (0, 2): 0.9, (0, 3): 0.1, (1, 2): 0.1, (1, 3): 0.1, (2, 3): 0.9}
    found = values([group_of("a", similar, outcomes)])
    shares = [found[f"consistent_{kind}", "all"].value for kind in ("right", "wrong", "mixed")]
    assert shares == [pytest.approx(100 / 6)] * 3
    assert found["inconsistent", "all"].value == pytest.approx(50)


def test_failure_cases_are_the_groups_in_which_not_every_answer_is_right() -> None:
    good = group_of("good", {(0, 1): 1.0}, [outcome("good", 0), outcome("good", 1)])
    bad = group_of("bad", {(0, 1): 0.1}, [outcome("bad", 0), outcome("bad", 1, right=False)])
    found = values([good, bad])
    assert found["failures", "all"].value == 50
    assert found["con", "all"].value == 50
    assert found["con_failures", "all"].value == 0
    assert found["s_gt_failures", "style=candy"].n == 1


def test_all_minus_sampling_is_paired_by_group() -> None:
    group = group_of("a", {(0, 1): 0.9, (0, 2): 0.1, (1, 2): 0.1}, [outcome("a", n) for n in range(3)])
    draws = tuple(outcome("a", 9, draw=number) for number in range(4))
    judgements = [pair_verdict(i, j, 1.0, "e") for i, j in combinations(draws, 2)]
    held = Group("a", 0, "a", group.outcomes, (*group.judgements, *judgements), {"unchanged": draws})
    found = values([held], sampling=True)
    assert found["con_minus_sampling", "all"].value == pytest.approx(100 / 3 - 100)
    assert found["acc_minus_sampling", "all"].value == 0
    alone = values([group], sampling=True)["con_minus_sampling", "all"]
    assert alone.value is None
    assert "unchanged" in (alone.reason or "")


def test_answers_that_say_nothing_count_as_wrong_unless_they_are_ignored() -> None:
    outcomes = [outcome("a", 0), outcome("a", 1, said="", right=False), outcome("a", 2)]
    group = group_of("a", {(0, 2): 1.0}, outcomes)
    assert values([group])["acc", "all"].value == pytest.approx(200 / 3)
    ignored = values([group], ignore_empty=True)
    assert ignored["acc", "all"].value == 100
    assert (ignored["con", "all"].n, ignored["failures", "all"].value) == (1, 0)
    assert ignored["pairs_left_out", "all"].value == pytest.approx(200 / 3)
    assert ignored["empty", "all"].value == pytest.approx(100 / 3)
    assert values([group])["empty", "all"].value == pytest.approx(100 / 3)


def test_equal_answers_agree_whatever_their_case_and_articles() -> None:
    outcomes = [outcome("a", 0, "A bus."), outcome("a", 1, "the bus"), outcome("a", 2, "a car")]
    found = values([group_of("a", {}, outcomes)])
    assert found["agree", "all"].value == pytest.approx(100 / 3)


def test_contrary_answers_above_the_threshold_are_counted() -> None:
    outcomes = [outcome("a", 0, "yes"), outcome("a", 1, "no"), outcome("a", 2, "yes")]
    group = group_of("a", {(0, 1): 0.73, (0, 2): 1.0, (1, 2): 0.73}, outcomes)
    found = values([group])["contrary_consistent", "all"]
    assert found.value == pytest.approx(200 / 3)
    assert found.n == 3


def test_without_an_embedder_similarities_are_null_with_the_reason() -> None:
    found = values([group_of("a", {})], embedded=False)
    assert found["con", "all"].value is None
    assert found["con", "all"].reason == "no similarities: embedder=none"


def test_answers_that_name_their_mask_are_counted_under_its_colour() -> None:
    def masked(nth: int, said: str, colour: str) -> Outcome:
        return outcome("a", nth, said, colour=colour, shape="rectangle", lines="3")

    outcomes = [masked(0, "a green square", "green"), masked(1, "an orange", "red"), masked(2, "red", "red")]
    found = values([group_of("a", {}, outcomes)], task_metrics=MASK_METRICS)
    assert found["names_colour", "colour=green"].value == 100
    assert found["names_colour", "colour=red"].value == 50


def test_a_response_of_which_it_is_undecided_whether_it_refuses_or_names_lines_is_left_out() -> None:
    said = [
        "a zebra",
        "A zebra. There are black stripes.",
        "I can't tell.",
        "I can't read it. He is a doctor from a large hospital.",
    ]
    outcomes = [outcome("a", nth, text, colour="red", lines="3") for nth, text in enumerate(said)]
    found = values([group_of("a", {}, outcomes)], task_metrics=MASK_METRICS)
    assert found["refused", "all"].value == pytest.approx(100 / 3)
    assert found["refused", "all"].n == 3
    assert (found["names_lines", "all"].value, found["names_lines", "all"].n) == (0, 3)


def test_answers_left_out_take_no_other_answer_out_of_its_label() -> None:
    def coloured(group: str, nth: int, said: str, colour: str) -> Outcome:
        return outcome(group, nth, said, right=False, colour=colour)

    first = [
        coloured("a", 0, "copper", "red"),
        coloured("a", 1, "copper", "red"),
        coloured("a", 2, "", "blue"),
    ]
    second = [
        coloured("b", n, said, colour)
        for n, (said, colour) in enumerate((("copper", "red"), ("yes", "blue"), ("yes", "green")))
    ]
    groups = [
        group_of("a", {(0, 1): 1.0, (0, 2): 0.0, (1, 2): 0.0}, first),
        group_of("b", {(0, 1): 0.1, (0, 2): 0.1, (1, 2): 1.0}, second),
    ]
    found = values(groups, ignore_empty=True)["con_by_response", "colour=red"]
    assert found.value == pytest.approx(200 / 3)  # two that agree, one that does not
    assert found.n == 3


def test_a_group_that_lacks_a_value_of_its_unchanged_inputs_has_no_difference() -> None:
    group = group_of("a", {(0, 1): 0.9}, [outcome("a", n) for n in range(2)])
    draws = tuple(outcome("a", 8 + nth, draw=number) for nth in range(2) for number in range(2))
    known = pair_verdict(draws[0], draws[1], 1.0, "e")  # of the second input nothing is known
    held = Group("a", 0, "a", group.outcomes, (*group.judgements, known), {"unchanged": draws})
    found = values([held], sampling=True)
    assert found["con_minus_sampling", "all"].value is None
    assert found["acc_minus_sampling", "all"].value == 0


def test_an_undecided_draw_leaves_the_other_draws_in() -> None:
    own = [outcome("a", 0), outcome("a", 1), outcome("a", 2, right=False)]
    draws = [outcome("a", 9, draw=number) for number in range(4)]
    draws[2] = replace(draws[2], verdict="undecided")
    held = Group("a", 0, "a", tuple(own), (), {"unchanged": tuple(draws)})
    found = values([held], sampling=True)["acc_minus_sampling", "all"]
    assert found.value_decided == pytest.approx(200 / 3 - 100)


def test_a_group_with_an_answer_that_nobody_can_score_is_no_failure() -> None:
    unscored = replace(outcome("a", 1), verdict="unscored", references=())
    found = values([group_of("a", {}, [outcome("a", 0, right=False), unscored])])
    assert found["failures", "all"].value is None


@pytest.mark.parametrize("metric", ["con", "s_c", "agree"])
def test_failures_of_a_hard_variant_raise_the_metric_but_not_the_one_over_complete_groups(
    metric: str,
) -> None:
    """The last variant gets another answer than the others; in half of the groups its request fails."""

    def group(name: str, hard_fails: bool) -> Group:
        outcomes = [outcome(name, nth, "bus" if nth < 3 else "dog") for nth in range(4)]
        similar = {(i, j): 1.0 if j < 3 else 0.0 for i, j in combinations(range(4), 2)}
        if hard_fails:
            outcomes[3] = replace(outcomes[3], response="", extracted=None, status="error", verdict="error")
            similar = {pair: value for pair, value in similar.items() if 3 not in pair}
        return group_of(name, similar, outcomes)

    none_failed = values([group(str(n), False) for n in range(10)])
    half_failed = values([group(str(n), n % 2 == 0) for n in range(10)])
    complete = f"{metric}_complete"
    assert none_failed[metric, "all"].value == none_failed[complete, "all"].value == 50
    assert half_failed[metric, "all"].value == pytest.approx(100 * 6 / 9)
    assert half_failed[complete, "all"].value == 50


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.floats(-1, 1)] * 6), min_size=2, max_size=4), st.integers(2, 4))
def test_a_label_has_the_estimator_of_the_metric_or_another_name(
    rows: list[tuple[float, ...]], size: int
) -> None:
    """Under a label that groups share, con is that of these groups alone; others have another name."""
    keys = list(combinations(range(4), 2))
    groups = []
    for n, row in enumerate(rows):
        members = size if n == 0 else 4
        outcomes = [outcome(str(n), i, style=STYLES[i], source="ab"[n % 2]) for i in range(members)]
        similar = {key: value for key, value in zip(keys, row, strict=True) if max(key) < members}
        groups.append(group_of(str(n), similar, outcomes))
    found = values(groups)
    for source in "ab":
        alone = values([g for g in groups if g.labels["source"] == source])
        assert found["con", f"source={source}"].value == pytest.approx(alone["con", "all"].value)
    names = {metric for metric, subset in found if subset.startswith("style=")}
    assert not {"con", "s_c", "agree"} & names
    assert {"con_by_response", "s_c_by_response", "agree_by_response"} <= names
    assert not any(metric.endswith("_by_response") for metric, subset in found if "style=" not in subset)


def test_a_group_of_which_a_verdict_is_undecided_or_failed_is_no_group_of_right_answers() -> None:
    def of(name: str, second: Outcome) -> Group:
        return group_of(name, {}, [outcome(name, 0), second])

    undecided = replace(outcome("a", 1), verdict="undecided")
    failed = replace(outcome("b", 1), verdict="error", status="error", error="timeout")
    good, bad = of("c", outcome("c", 1)), of("d", outcome("d", 1, right=False))
    found = values([of("a", undecided), of("b", failed), good, bad])["failures", "all"]
    assert (found.value, found.value_if_right) == (75, 50)
    assert found.value_decided == pytest.approx(200 / 3)
