"""Intervals of judges by whole items, and how many items it takes to tell two judges apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sightline.metric_types import MetricValue
from sightline.metrics.association import AGREEMENT, KAPPA, ROC_AUC, SPEARMAN, Statistic
from sightline.metrics.judge_statistics import NOTHING_JUDGED, judge_difference, statistic_value
from sightline.metrics.statistics import Floats, wilson

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
    assert (found.n, found.clusters, found.interval) == (60, 60, "bootstrap")
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
    low, high = wilson(int((judge == TRUTH).sum()), 60)
    assert found.interval == "wilson"
    assert [found.low, found.high] == pytest.approx([100 * low, 100 * high])


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


def test_a_perfect_judge_has_no_interval_rather_than_one_without_width() -> None:
    found = statistic_value(ROC_AUC, TRUTH, TRUTH, ITEMS)
    assert (found.value, found.low, found.interval) == (100.0, None, None)


def test_one_item_has_no_interval() -> None:
    found = statistic_value(ROC_AUC, np.array([0.0, 1.0]), np.array([0.0, 1.0]), ["a", "a"])
    assert (found.value, found.clusters, found.low) == (100.0, 1, None)


def test_the_same_seed_gives_the_same_interval() -> None:
    one, again, other = (statistic_value(KAPPA, noisy(0.3, 4), TRUTH, ITEMS, seed=seed) for seed in (5, 5, 6))
    assert one == again
    assert one != other


def test_a_judge_is_not_distinguishable_from_itself() -> None:
    judge = noisy(0.2, 7)
    found = judge_difference(ROC_AUC, (judge, judge), TRUTH, ITEMS)
    assert (found.difference.value, found.difference.unit) == (0.0, "points")
    assert found.distinguishable is None
    assert (found.detectable, found.needed) == (None, None)


def test_a_good_and_a_hopeless_judge_are_distinguishable() -> None:
    found = judge_difference(ROC_AUC, (noisy(0.5, 8), noisy(0.02, 9)), TRUTH, ITEMS)
    assert found.distinguishable
    assert found.difference.value is not None
    assert found.difference.value < -20
    assert found.needed is not None
    assert found.needed < 60


def test_two_that_differ_too_little_are_not_distinguishable() -> None:
    assert judge_difference(ROC_AUC, (noisy(0.3, 8), noisy(0.25, 9)), TRUTH, ITEMS).distinguishable is False


def test_a_difference_without_spread_has_no_test() -> None:
    """A judge who says yes to everything beside a perfect one: 50 points apart in every resample."""
    found = judge_difference(ROC_AUC, (np.ones(60), TRUTH), TRUTH, ITEMS)
    assert (found.difference.value, found.difference.low) == (-50, None)
    assert found.distinguishable is None


def test_items_needed_are_those_of_the_normal_power_of_a_paired_difference() -> None:
    """Against statsmodels: agreement's paired differences are a mean, whose standard error is known."""
    power = pytest.importorskip("statsmodels.stats.power", reason="needs the extra 'dev'")
    one, other = noisy(0.2, 10), noisy(0.3, 11)
    found = judge_difference(AGREEMENT, (one, other), TRUTH, ITEMS, resamples=40_000)
    differences = (one == TRUTH).astype(float) - (other == TRUTH)
    effect = abs(differences.mean()) / differences.std()
    wanted = power.NormalIndPower().solve_power(effect, power=0.8, alpha=0.05, ratio=0)
    assert found.needed == pytest.approx(wanted, rel=0.03)
    assert found.detectable is not None
    assert found.difference.value is not None
    assert found.needed == math.ceil(60 * (found.detectable / found.difference.value) ** 2)
