"""Conditions of --fail-if on a comparison of runs."""

from __future__ import annotations

import pytest

from sightline.errors import UserError
from sightline.evaluation.options import parse_difference_conditions
from sightline.metrics.significance import MarginVerdict, Significance
from sightline.types import PERCENT, MetricDefinition, MetricValue


def _row(metric: str, subset: str, value: float | None) -> MetricValue:
    return MetricValue(
        metric, subset, value, 40, 30, unit="points", reason="no group has a value in both runs"
    )


ROWS = [
    _row("acc_p", "all", -30.0),
    _row("acc_p", "category=Attributes", -12.5),
    _row("acc_q", "all", 8.0),
    _row("miss", "all", 4.0),
    _row("bias", "all", 1.0),
]
SURE = Significance(p=0.001, t=None, mcnemar=None, detectable=None, holm=0.004)
UNSURE = Significance(p=0.04, t=0.001, mcnemar=0.001, detectable=None, holm=0.08, benjamini_hochberg=0.04)
TESTED = {
    ("acc_p", "all"): SURE,
    ("acc_p", "category=Attributes"): UNSURE,
    ("acc_q", "all"): SURE,
    ("miss", "all"): SURE,
}
LEADING = ("acc_p", "acc_q")
DEFINITIONS = {
    "acc_p": MetricDefinition("", "higher", PERCENT),
    "acc_q": MetricDefinition("", "higher", PERCENT),
    "miss": MetricDefinition("", "lower", PERCENT),
    "bias": MetricDefinition("", "neither", PERCENT),
}


def _found(text: str, rows: list[MetricValue] = ROWS) -> list[str]:
    (condition,) = parse_difference_conditions([text], rows, DEFINITIONS)
    return condition.met(rows, TESTED)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acc_p: worse", ["acc_p: worse: acc_p differs by -30 (p 0.004, Holm)"]),
        ("acc_p:lower", ["acc_p:lower: acc_p differs by -30 (p 0.004, Holm)"]),
        ("acc_p: higher", []),
        ("acc_q: worse", []),
        ("acc_q: higher", ["acc_q: higher: acc_q differs by +8 (p 0.004, Holm)"]),
        ("miss: higher", ["miss: higher: miss differs by +4 (p 0.004, Holm)"]),
        ("miss: worse", ["miss: worse: miss differs by +4 (p 0.004, Holm)"]),
        ("acc_p[category=Attributes]: worse", []),  # t and McNemar find it; they do not decide
    ],
)
def test_only_a_significant_difference_in_that_direction_fails(text: str, found: list[str]) -> None:
    assert _found(text) == found


def test_worse_covers_every_metric_of_the_table() -> None:
    leading = [row for row in ROWS if row.metric in LEADING]
    assert _found("worse", leading) == ["worse: acc_p differs by -30 (p 0.004, Holm)"]


WITHIN = {
    ("acc_p", "all"): MarginVerdict(non_inferior=False, equivalent=False),
    ("acc_q", "all"): MarginVerdict(non_inferior=True, equivalent=False),
}


@pytest.mark.parametrize(
    ("text", "failing"),
    [
        ("not-non-inferior", ["acc_p"]),
        ("not-equivalent", ["acc_p", "acc_q"]),
        ("acc_q: not-non-inferior", []),
        ("acc_q: not-equivalent", ["acc_q"]),
    ],
)
def test_a_claim_within_the_margin_that_is_not_shown_fails(text: str, failing: list[str]) -> None:
    rows = [row for row in ROWS if (row.metric, row.subset) in WITHIN]
    (condition,) = parse_difference_conditions([text], rows, DEFINITIONS, WITHIN)
    claim = text.rpartition("not-")[2] if "equivalent" in text else "non-inferior"
    expected = [f"{text}: {metric} is not shown to be {claim}" for metric in failing]
    assert condition.met(rows, TESTED) == expected


def test_a_claim_that_cannot_be_tested_fails_with_the_reason() -> None:
    rows = [row for row in ROWS if (row.metric, row.subset) == ("acc_p", "all")]
    within = {("acc_p", "all"): MarginVerdict(reason="too few")}
    (condition,) = parse_difference_conditions(["not-equivalent"], rows, DEFINITIONS, within)
    assert condition.met(rows, TESTED) == ["not-equivalent: acc_p is not shown to be equivalent (too few)"]


def test_a_condition_on_the_margin_needs_one() -> None:
    with pytest.raises(UserError, match="needs a margin"):
        parse_difference_conditions(["not-equivalent"], ROWS, DEFINITIONS)


def test_a_condition_holds_for_a_row_without_a_difference() -> None:
    rows = [_row("acc_p", "all", None)]
    (condition,) = parse_difference_conditions(["worse"], rows, DEFINITIONS)
    assert condition.met(rows, {}) == ["worse: acc_p has no difference (no group has a value in both runs)"]


NULL = [_row("acc_p", "all", None), _row("acc_q", "all", None)]


@pytest.mark.parametrize(
    ("rows", "failing"),
    [([*NULL, ROWS[3]], ["acc_p", "miss"]), ([NULL[1], ROWS[3]], ["miss"]), (NULL[1:], ["acc_q"])],
)
def test_a_row_that_neither_run_can_have_fails_only_if_no_other_row_is_there(
    rows: list[MetricValue], failing: list[str]
) -> None:
    (condition,) = parse_difference_conditions(["worse"], rows, DEFINITIONS)
    found = condition.met(rows, TESTED, not_applicable={("acc_q", "all")})
    assert [line.split()[1] for line in found] == failing


def test_a_condition_on_one_metric_holds_without_a_value_whatever_the_reason() -> None:
    (condition,) = parse_difference_conditions(["acc_q: worse"], NULL, DEFINITIONS)
    assert condition.met(NULL, TESTED, not_applicable={("acc_q", "all")})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "acc_x: worse",
            "the metric is not in this table (found 'acc_p, acc_q, miss, bias'); expected",
        ),
        ("acc_p[category=Else]: worse", "has no such row in this table (found 'all, category=Attributes')"),
        ("bias: worse", "neither direction of bias is better; expected 'bias: lower' or"),
        ("worse", "neither direction of bias is better"),
        ("lower", "names no metric; expected 'METRIC: lower'"),
        ("acc_p<30", "not a condition on two runs; expected worse, 'METRIC: worse'"),
        ("acc_p: bad", "not a condition on two runs"),
        ("", "not a condition on two runs"),
    ],
)
def test_an_invalid_condition_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_difference_conditions([text], ROWS, DEFINITIONS)
    assert message in str(refused.value)


def test_a_condition_says_what_undecided_verdicts_allow() -> None:
    (condition,) = parse_difference_conditions(["worse"], ROWS[:1], DEFINITIONS)
    (line,) = condition.met(ROWS[:1], TESTED, {("acc_p", "all"): (-40.0, 5.0)})
    assert line.endswith("differs by -30 (p 0.004, Holm); undecided verdicts allow -40 to +5")
