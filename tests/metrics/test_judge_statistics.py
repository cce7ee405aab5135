"""Intervals of judges by whole items, and how many items it takes to tell two judges apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import binomtest, ttest_1samp, ttest_rel

from sightline.metrics import association
from sightline.metrics.association import (
    AGREEMENT,
    KAPPA,
    NOTHING_JUDGED,
    ROC_AUC,
    SPEARMAN,
    Statistic,
    equal_share,
    judge_difference,
    statistic_value,
)
from sightline.metrics.statistics import TOO_FEW, UNDEFINED, Floats
from sightline.types import MetricValue

TRUTH = np.array([1, 0] * 30, dtype=np.float64)
ITEMS = [str(number) for number in range(60)]


def noisy(share: float, seed: int) -> Floats:
    """A judge who is wrong about that share of the answers."""
    turned = np.random.default_rng(seed).random(60) < share
    return np.where(turned, 1 - TRUTH, TRUTH)


def width(found: MetricValue) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_an_area_is_in_percent_within_its_interval() -> None:
    found = statistic_value(ROC_AUC, noisy(0.2, 1), TRUTH, ITEMS)
    assert (found.metric, found.unit, found.judge, found.subset) == ("roc_auc", "percent", None, "all")
    assert (found.n, found.clusters, found.interval) == (60, 60, "wilson")
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert 50 < found.low < found.value < found.high <= 100


def test_answers_of_six_models_to_one_item_are_one_cluster() -> None:
    scores = np.repeat(noisy(0.3, 2)[:10], 6)
    truth = np.repeat(TRUTH[:10], 6)
    apart = statistic_value(SPEARMAN, scores, truth, [str(number) for number in range(60)])
    together = statistic_value(SPEARMAN, scores, truth, [str(number // 6) for number in range(60)])
    assert apart.value == together.value
    assert (apart.clusters, together.clusters) == (60, 10)
    assert width(together) > 1.5 * width(apart)


def test_an_agreement_of_single_answers_has_wilsons_interval() -> None:
    judge = noisy(0.25, 3)
    found = statistic_value(AGREEMENT, judge, TRUTH, ITEMS)
    expected = binomtest(int((judge == TRUTH).sum()), 60).proportion_ci(method="wilson")
    assert found.interval == "wilson"
    assert [found.low, found.high] == pytest.approx([100 * expected.low, 100 * expected.high])


@pytest.mark.parametrize("statistic", [ROC_AUC, SPEARMAN, KAPPA])
def test_what_humans_all_call_right_has_no_value_and_a_reason(statistic: Statistic) -> None:
    found = statistic_value(statistic, np.ones(4), np.ones(4), list("abcd"))
    assert (found.value, found.low, found.high, found.interval, found.n) == (None, None, None, None, 0)
    assert found.reason == statistic.absent


@pytest.mark.parametrize("statistic", [ROC_AUC, SPEARMAN, AGREEMENT, KAPPA])
def test_without_verdicts_a_statistic_is_none_and_not_zero(statistic: Statistic) -> None:
    nothing = np.array([])
    found = statistic_value(statistic, nothing, nothing, [])
    reason = statistic.absent if statistic.share else NOTHING_JUDGED
    assert (found.value, found.n, found.clusters, found.reason) == (None, 0, 0, reason)


def test_a_perfect_judge_has_an_interval_with_a_width() -> None:
    found = statistic_value(ROC_AUC, TRUTH, TRUTH, ITEMS)
    expected = binomtest(60, 60).proportion_ci(method="wilson")
    assert (found.value, found.high, found.interval) == (100.0, 100.0, "wilson")
    assert found.low == pytest.approx(100 * expected.low)


def test_one_item_has_no_interval() -> None:
    found = statistic_value(ROC_AUC, np.array([0.0, 1.0]), np.array([0.0, 1.0]), ["a", "a"])
    assert (found.value, found.clusters, found.low, found.reason) == (100.0, 1, None, TOO_FEW)


def test_a_value_that_one_item_decides_has_no_interval_but_a_reason() -> None:
    """Without the only wrong answer there is no pair of a right and a wrong one."""
    truth = np.array([0.0] + [1.0] * 9)
    found = statistic_value(ROC_AUC, np.arange(10.0), truth, ITEMS[:10])
    assert (found.value, found.low, found.reason) == (100.0, None, UNDEFINED)


def test_the_jackknife_of_an_agreement_is_that_of_a_mean() -> None:
    """The jackknife variance of a mean is the usual squared standard error."""
    equal = (noisy(0.25, 3) == TRUTH).astype(float)
    alike = Statistic("alike", equal_share, "absent", range=(None, None))
    found = statistic_value(alike, equal, np.ones(60), ITEMS)
    expected = ttest_1samp(equal, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_blocks_of_clusters_give_nearly_the_interval_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    each = statistic_value(KAPPA, noisy(0.3, 4), TRUTH, ITEMS)
    monkeypatch.setattr(association, "MOST_BLOCKS", 30)
    blocks = statistic_value(KAPPA, noisy(0.3, 4), TRUTH, ITEMS)
    assert width(blocks) == pytest.approx(width(each), rel=0.25)


def test_a_judge_is_not_distinguishable_from_itself() -> None:
    judge = noisy(0.2, 7)
    found = judge_difference(ROC_AUC, (judge, judge), TRUTH, ITEMS)
    assert (found.difference.value, found.difference.unit) == (0.0, "points")
    assert (found.p, found.detectable, found.needed) == (1.0, None, None)


def test_a_good_and_a_hopeless_judge_are_distinguishable() -> None:
    found = judge_difference(ROC_AUC, (noisy(0.5, 8), noisy(0.02, 9)), TRUTH, ITEMS)
    assert found.p is not None
    assert found.p < 0.001
    assert found.difference.value is not None
    assert found.difference.value < -20
    assert found.needed is not None
    assert found.needed < 60


def test_two_that_differ_too_little_are_not_distinguishable() -> None:
    found = judge_difference(ROC_AUC, (noisy(0.3, 8), noisy(0.25, 9)), TRUTH, ITEMS)
    assert found.p is not None
    assert found.p > 0.05


def test_a_difference_without_spread_has_no_test() -> None:
    """A judge who says yes to everything beside a perfect one: 50 points apart without any item."""
    found = judge_difference(ROC_AUC, (np.ones(60), TRUTH), TRUTH, ITEMS)
    assert (found.difference.value, found.p, found.distinguishable) == (-50, None, None)


@pytest.mark.parametrize(("holm", "said"), [(None, None), (0.05, True), (0.051, False)])
def test_the_corrected_p_decides_whether_judges_are_distinguishable(
    holm: float | None, said: bool | None
) -> None:
    found = judge_difference(ROC_AUC, (noisy(0.5, 8), noisy(0.02, 9)), TRUTH, ITEMS)
    assert replace(found, holm=holm).distinguishable is said


def test_the_p_value_of_a_difference_of_agreements_is_that_of_the_paired_t_test() -> None:
    one, other = noisy(0.2, 10), noisy(0.4, 11)
    found = judge_difference(AGREEMENT, (one, other), TRUTH, ITEMS)
    expected = ttest_rel((one == TRUTH).astype(float), (other == TRUTH).astype(float)).pvalue
    assert found.p == pytest.approx(expected)


def test_items_needed_are_those_of_the_normal_power_of_a_paired_difference() -> None:
    """Against statsmodels: agreement's paired differences are a mean, whose standard error is known."""
    power = pytest.importorskip("statsmodels.stats.power", reason="needs the extra 'dev'")
    one, other = noisy(0.2, 10), noisy(0.3, 11)
    found = judge_difference(AGREEMENT, (one, other), TRUTH, ITEMS)
    differences = (one == TRUTH).astype(float) - (other == TRUTH)
    effect = abs(differences.mean()) / differences.std()
    wanted = power.NormalIndPower().solve_power(effect, power=0.8, alpha=0.05, ratio=0)
    assert found.needed == pytest.approx(wanted, rel=0.03)
    assert found.detectable is not None
    assert found.difference.value is not None
    assert found.needed == math.ceil(60 * (found.detectable / found.difference.value) ** 2)
