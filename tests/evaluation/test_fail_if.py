"""Conditions of --fail-if on the numbers of a result."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.evaluation.options import check_condition_metrics, conditions_met, parse_conditions
from sightline.metrics.statistics import TOO_FEW
from sightline.types import MetricValue, Result


def result(*metrics: MetricValue, undecided: int = 0, not_sent: int = 0) -> Result:
    return Result(
        benchmark="codis",
        setting="default",
        model="m",
        model_identity="m",
        judge="rules",
        options={},
        samples=20,
        probes=40,
        errors=0,
        misses=0,
        undecided=undecided,
        truncated=0,
        versions={},
        data_digest="",
        metrics=list(metrics),
        not_sent=not_sent,
    )


METRICS = [
    MetricValue("acc_p", "all", 70.0, 40, 30, 55.5, 82.5, "wilson"),
    MetricValue("acc_p", "category=Location and Orientation", 20.0, 5, 1, reason=TOO_FEW),
    MetricValue("acc_p", "words=a<b [c]", 50.0, 2, 2, 10.0, 90.0, "wilson"),
    MetricValue("image_gain", "all", None, 0, 0, reason="needs the answers of setting 'no-image'"),
    MetricValue("s_gt", "all", 1 / 3, 3, 3),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acc_p<30", None),
        ("acc_p<70", None),
        ("acc_p<=70", "acc_p<=70: it is 70"),
        (" acc_p > 69.999 ", "acc_p > 69.999: it is 70.000"),
        ("acc_p<7e1", None),
        ("acc_p.low<60", "acc_p.low<60: it is 55.50"),
        ("acc_p.high<60", None),
        (
            "acc_p[category=Location and Orientation]<=20.5",
            "acc_p[category=Location and Orientation]<=20.5: it is 20.00",
        ),
        ("acc_p[words=a<b [c]].low>5", "acc_p[words=a<b [c]].low>5: it is 10.00"),
        ("s_gt<0.333334", "s_gt<0.333334: it is 0.333333"),
    ],
)
def test_a_condition_that_holds_gives_a_line(text: str, found: str | None) -> None:
    assert conditions_met(parse_conditions([text]), result(*METRICS)) == (() if found is None else (found,))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("image_gain<1", "there is no number to compare (needs the answers of setting 'no-image')"),
        ("image_gain>1", "there is no number to compare (needs the answers of setting 'no-image')"),
        (
            "acc_p[category=Location and Orientation].low<3",
            "there is no number to compare (no confidence interval with fewer than 5 clusters)",
        ),
        (
            "acc_p[category=Nowhere]<1",
            "there is no such number, only for all, category=Location and Orientation, words=a<b [c]",
        ),
        ("con<1", "there is no such number"),
    ],
)
def test_a_condition_without_a_number_holds(text: str, why: str) -> None:
    assert conditions_met(parse_conditions([text]), result(*METRICS)) == (f"{text}: {why}",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acc_p", "not a condition on a number; expected METRIC<NUMBER"),
        ("acc_p: worse", "not a condition on a number"),
        ("<30", "not a condition on a number"),
        ("acc_p=30", "not a condition on a number"),
        ("acc_p<", "has no number (found '')"),
        ("acc_p<many", "has no number (found 'many')"),
        ("acc_p<nan", "has no number (found 'nan')"),
        ("acc_p<inf", "has no number (found 'inf')"),
        ("acc_p<30%", "has no number (found '30%')"),
        ("acc_p<<30", "has no number (found '<30')"),
        ("acc_p.mean<3", "no metric has .mean; expected .low, .high, or neither"),
    ],
)
def test_an_invalid_condition_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_conditions([text])
    assert message in str(refused.value)
    assert repr(text) in str(refused.value)


def test_an_unknown_metric_is_refused_with_the_most_similar_one() -> None:
    with pytest.raises(UserError, match="unknown metric in --fail-if 'ac_p', did you mean 'acc_p'"):
        check_condition_metrics(parse_conditions(["acc_p<3", "ac_p<3"]), {"acc_p", "con"})


@given(st.floats(0, 100), st.sampled_from(["<", "<=", ">", ">="]), st.floats(0, 100))
def test_a_condition_holds_as_in_python(value: float, sign: str, number: float) -> None:
    holds = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign](value, number)
    (wanted,) = parse_conditions([f"m{sign}{number!r}"])
    assert bool(wanted.met(result(MetricValue("m", "all", value, 1, 1)))) == holds


@given(st.floats(0, 100), st.floats(0, 100), st.sampled_from(["<", "<=", ">", ">="]), st.floats(0, 100))
def test_a_condition_holds_wherever_undecided_verdicts_could_make_it_hold(
    value: float, if_right: float, sign: str, number: float
) -> None:
    metric = MetricValue("m", "all", value, 1, 1, value_if_right=if_right)
    (wanted,) = parse_conditions([f"m{sign}{number!r}"])
    holds = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign]
    line = wanted.met(result(metric, undecided=10))
    assert bool(line) == (holds(value, number) or holds(if_right, number))
    if line is not None and if_right != value:
        assert "if all undecided verdicts (10 of 40, 25.0 %) were right" in line


def test_a_condition_says_what_its_number_does_not_cover() -> None:
    (wanted,) = parse_conditions(["acc_p<80"])
    line = wanted.met(result(*METRICS, not_sent=30))
    assert line == "acc_p<80: it is 70.00; 30 of 40 probes were not sent"
