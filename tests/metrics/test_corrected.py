"""Prediction-powered inference against its authors' package, and the rules that any correction keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.evaluation.corrected import (
    ClusterTerms,
    Correction,
    clusters_to_halve,
    correct,
    labels_needed,
)
from sightline.metrics.statistics import Floats, intervals, ratio_estimates, two_sided_quantile


def simple(labels: Floats, read: Floats) -> Correction:
    """Independent units, of which humans labelled the first ones."""
    sample = np.arange(len(labels))
    ones = np.ones(len(read))
    return correct(ClusterTerms(read, ones), ClusterTerms(labels, ones[sample]), sample, ones[sample])


def drawn(seed: int, units: int, labelled: int) -> tuple[Floats, Floats]:
    """Graded labels of some units, and what a biased judge reads of all."""
    random = np.random.default_rng(seed)
    truth = 0.3 * random.random(units) + 0.5 * (random.random(units) < 0.6)
    return truth[:labelled], truth + random.normal(0.1, 0.2, units)


def ppi(
    labels: Floats, read: Floats, unread: Floats, weight: float | None = None
) -> tuple[float, float, float]:
    """Mean, standard error and weight by Angelopoulos, Duchi and Zrnic (2023), section 6 and algorithm 3.

    `read` and `unread` are the judge's values of labelled and of other units.
    """
    n, others = len(labels), len(unread)
    if weight is None:
        covariance = float(np.mean((labels - labels.mean()) * (read - read.mean())))
        variance = float(np.var(np.concatenate([read, unread]), ddof=1))
        weight = min(1, max(0, covariance / ((1 + n / others) * variance)))
    mean = weight * unread.mean() + float(np.mean(labels - weight * read))
    error = np.sqrt(weight**2 * unread.var() / others + (labels - weight * read).var() / n)
    return float(mean), float(error), weight


def cross_fitted(human: ClusterTerms, judged: ClusterTerms, weights: Floats) -> tuple[float, Floats]:
    """The corrected value and the weights of the first clusters, which are labelled: each weight is found
    without its cluster, from the formulas of PPI++."""
    labelled = len(weights)
    everything = ratio_estimates(judged.sums[None], judged.counts[None]).variances[0] * len(judged.sums)
    unread = judged.sums[labelled:].sum() / judged.counts[labelled:].sum()
    read = ClusterTerms(judged.sums[:labelled], judged.counts[:labelled])
    size = (weights @ human.counts) / weights.sum()
    value, found = (weights @ human.sums) / (weights @ human.counts), []
    for one in range(labelled):
        rest = np.arange(labelled) != one
        residuals = []
        for terms in (human, read):
            counts, sums = (weights * terms.counts)[rest], (weights * terms.sums)[rest]
            residuals.append((sums - sums.sum() / counts.sum() * counts) / counts.mean())
        differences = (read.sums - human.sums)[rest] / size
        seen = np.mean(differences != 0)
        expected = (seen * (labelled - 1) + 1) / (labelled + 1)
        squares = differences[differences != 0] if seen else (human.counts / size)[rest]
        unseen = np.mean(squares**2) * max(0, expected * (1 - expected) - seen * (1 - seen))
        found.append(np.clip(np.mean(residuals[0] * residuals[1]) / (everything + unseen), 0, 1))
        share = 1 / judged.counts.sum() - weights[one] / (weights @ read.counts)
        value += found[-1] * (read.sums[one] - unread * read.counts[one]) * share
    return float(value), np.array(found)


@pytest.mark.parametrize(("units", "labelled"), [(500, 60), (3_000, 20), (300, 150)])
def test_independent_units_have_the_weight_of_ppi(units: int, labelled: int) -> None:
    """PPI++ compares labelled units with the others, this package with all: the weight has another scale.

    The weight of each unit is that of PPI++ on the other labelled ones, but for the unseen differences.
    """
    labels, read = drawn(units, units, labelled)
    expected = []
    for one in range(labelled):
        rest = np.arange(labelled) != one
        _, _, weight = ppi(labels[rest], read[:labelled][rest], read[labelled:])
        expected.append(weight / (1 - labelled / units))
    assert simple(labels, read).weight == pytest.approx(np.mean(expected), rel=2 / labelled)


@given(st.integers(0, 10_000), st.integers(3, 59))
@settings(max_examples=50, deadline=None)
def test_each_labelled_cluster_has_the_weight_that_the_others_give(seed: int, labelled: int) -> None:
    counts, truth, read = clustered(seed)
    random = np.random.default_rng(seed)
    human = ClusterTerms(truth[:labelled], counts[:labelled])
    judged = ClusterTerms(read, np.maximum(read, random.integers(1, 5, len(read))))
    chances = random.choice([0.25, 0.5], labelled)
    found = correct(judged, human, np.arange(labelled), chances)
    value, weights = cross_fitted(human, judged, 1 / chances)
    assert found.weight == pytest.approx(weights.mean())
    assert found.corrected.values[0] == pytest.approx(value)


def test_with_many_units_the_interval_is_that_of_ppi_to_a_hundred_thousandth() -> None:
    """The corrections for few clusters vanish: leverage, Student's t, unseen errors, weights of others."""
    labels, read = drawn(0, 400_000, 60_000)
    found = simple(labels, read)
    mean, error, _ = ppi(labels, read[:60_000], read[60_000:])
    (interval,) = intervals(found.corrected, [(None, None)])
    assert not isinstance(interval, str)
    assert found.corrected.values[0] == pytest.approx(mean, abs=1e-5)
    normal = float(two_sided_quantile(np.array(np.inf)))
    assert (interval.low, interval.high) == pytest.approx(
        (mean - normal * error, mean + normal * error), abs=1e-5
    )


@pytest.mark.parametrize(
    ("seed", "weight", "low", "high"),
    [
        (0, None, 0.42971023209753134, 0.5063066335995551),
        (0, 0.4, 0.4278466629101925, 0.5074863253119914),
        (1, None, 0.41628421832734774, 0.49376604519184253),
        (1, 0.4, 0.41842482195479247, 0.49712040280168057),
        (2, None, 0.40613922422772825, 0.4881509456571566),
        (2, 0.4, 0.403696545955628, 0.48673535623526),
    ],
)
def test_the_formulas_above_give_what_ppi_python_gives(
    seed: int, weight: float | None, low: float, high: float
) -> None:
    """`ppi_mean_ci` of ppi-python 0.2.3 on the same data, with its own weight and with a given one."""
    labels, read = drawn(seed, 600, 80)
    mean, error, _ = ppi(labels, read[:80], read[80:], weight)
    normal = float(two_sided_quantile(np.array(np.inf)))
    assert (mean - normal * error, mean + normal * error) == pytest.approx((low, high), abs=1e-6)


def clustered(seed: int, clusters: int = 60, labelled: int = 25) -> tuple[Floats, Floats, Floats]:
    random = np.random.default_rng(seed)
    counts = random.choice([1.0, 2, 2, 3, 6], clusters)
    truth = random.binomial(counts.astype(int), random.beta(1, 1, clusters)).astype(float)
    read: Floats = np.clip(truth + random.integers(-1, 2, clusters), 0, counts)
    return counts, truth, read


def of_first(counts: Floats, truth: Floats, read: Floats, labelled: int) -> Correction:
    sample = np.arange(labelled)
    return correct(
        ClusterTerms(read, counts), ClusterTerms(truth[sample], counts[sample]), sample, np.ones(labelled)
    )


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_with_labels_of_all_clusters_the_corrected_value_is_the_humans(seed: int) -> None:
    counts, truth, read = clustered(seed)
    found = of_first(counts, truth, read, len(counts))
    assert found.corrected.values[0] == found.human.values[0] == truth.sum() / counts.sum()
    alone = ratio_estimates(truth[None], counts[None])
    # The judge adds nothing but the allowance for errors that labels could have missed.
    assert alone.variances[0] <= found.corrected.variances[0] + 1e-12


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_equal_probabilities_weigh_nothing(seed: int) -> None:
    counts, truth, read = clustered(seed)
    sample = np.arange(20)
    human = ClusterTerms(truth[sample], counts[sample])
    one, other = (
        correct(ClusterTerms(read, counts), human, sample, np.full(20, chance)) for chance in (1.0, 0.25)
    )
    assert one.corrected.values == pytest.approx(other.corrected.values)
    assert one.corrected.variances == pytest.approx(other.corrected.variances)


def test_a_judge_that_reads_at_random_counts_nothing_or_little() -> None:
    random = np.random.default_rng(1)
    truth, read = (random.random(2_000) < 0.5).astype(float), (random.random(2_000) < 0.5).astype(float)
    assert simple(truth[:400], read).weight < 0.1
    assert simple(truth[:400], 1 - truth).weight == 0  # the opposite of the truth: no correction


def test_where_humans_call_everything_right_the_interval_is_that_of_humans_alone() -> None:
    """A share of 1: at most so many clusters can deviate as Wilson's bound of 0 among them allows."""
    random = np.random.default_rng(2)
    read = (random.random(300) < 0.9).astype(float)
    found = simple(np.ones(30), read)
    (own,), (human,) = intervals(found.corrected, [(0, 1)]), intervals(found.human, [(0, 1)])
    assert own == human
    assert not isinstance(own, str)
    assert 0.85 < own.low < 0.92
    assert own.high == 1


def test_a_judge_without_an_error_in_a_small_sample_is_not_taken_for_perfect() -> None:
    """None of 20 labelled units differs: 14 % of all could (Wilson), so the interval stays far above 0."""
    random = np.random.default_rng(3)
    read = (random.random(5_000) < 0.6).astype(float)
    found = simple(read[:20], read)
    (own,) = intervals(found.corrected, [(0, 1)])
    assert not isinstance(own, str)
    assert 0.12 < own.high - own.low < 0.35


def of_sample(truth: Floats, read: Floats, chosen: Sequence[int]) -> Correction:
    """Units of which humans labelled the chosen ones, each with the same probability."""
    sample, ones = np.array(sorted(chosen)), np.ones(len(read))
    probabilities = np.full(len(sample), len(sample) / len(read))
    return correct(ClusterTerms(read, ones), ClusterTerms(truth[sample], ones[sample]), sample, probabilities)


def test_the_variance_of_these_clusters_alone_is_that_over_all_samples_of_them() -> None:
    """Every sample of 6 of 12 graded units: the design-based truth, of which no model is part."""
    truth, read = drawn(3, 12, 12)
    every = [of_sample(truth, read, chosen) for chosen in combinations(range(12), 6)]
    values = np.array([one.finite.values[0] for one in every])
    variances = np.array([one.finite.variances[0] for one in every])
    assert values.mean() == pytest.approx(truth.mean(), abs=0.01)
    assert 0.9 < variances.mean() / values.var() < 1.5
    assert all(one.finite.variances[0] < one.corrected.variances[0] for one in every)


def test_labels_of_all_clusters_leave_nothing_open_about_these() -> None:
    truth, read = drawn(3, 12, 12)
    found = of_sample(truth, read, range(12))
    assert found.finite.values[0] == pytest.approx(truth.mean())
    assert found.finite.variances[0] == 0 < found.corrected.variances[0]


@pytest.mark.parametrize("labelled", [60, 200])
def test_intervals_of_these_clusters_alone_hold_what_humans_would_say_of_all(labelled: int) -> None:
    """353 pairs that stay as they are, right or wrong; the judge errs on one of eight."""
    random = np.random.default_rng(11)
    truth = (random.random(353) < 0.4).astype(np.float64)
    read = np.where(random.random(353) < 1 / 8, 1 - truth, truth)
    held = 0
    for _ in range(600):
        found = of_sample(truth, read, random.choice(353, labelled, replace=False).tolist())
        (interval,) = intervals(found.finite, [(0.0, 1.0)], graded=False)
        assert not isinstance(interval, str)
        held += interval.low <= truth.mean() <= interval.high
    assert 0.93 <= held / 600 <= 0.99


def test_the_interval_of_a_stratified_sample_does_not_count_what_differs_between_strata() -> None:
    """600 samples of a fifth of each of three strata, of which 5, 50 and 90 % are right; a poor judge."""
    random = np.random.default_rng(12)
    strata = np.repeat([0, 1, 2], [400, 240, 160])
    truth = (random.random(800) < np.array([0.05, 0.5, 0.9])[strata]).astype(np.float64)
    read, ones = np.where(random.random(800) < 0.3, 1 - truth, truth), np.ones(800)
    found = []
    for _ in range(600):
        drawn = [
            random.choice(np.flatnonzero(strata == one), of, False) for one, of in enumerate((80, 48, 32))
        ]
        sample = np.sort(np.concatenate(drawn))
        human = ClusterTerms(truth[sample], ones[sample])
        found += [
            correct(ClusterTerms(read, ones), human, sample, np.full(160, 0.2), of)
            for of in (None, strata[sample])
        ]
    values = np.array([one.finite.values[0] for one in found[1::2]])
    apart, together = (np.mean([one.finite.variances[0] for one in of]) for of in (found[1::2], found[::2]))
    assert apart / values.var() == pytest.approx(1, abs=0.12)
    assert together / values.var() > 1.5
    bounds = [intervals(one.finite, [(0.0, 1.0)])[0] for one in found[1::2]]
    held = [not isinstance(one, str) and one.low <= truth.mean() <= one.high for one in bounds]
    assert 0.93 <= np.mean(held) <= 0.98


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6), st.floats(0.01, 1)), min_size=1, max_size=3),
    st.floats(0, 0.02),
    st.floats(0.05, 3),
)
@settings(max_examples=150, deadline=None)
def test_no_other_choice_of_labels_is_smaller_than_the_planned_one(
    drawn: list[tuple[int, int, float]], fixed: float, half_width: float
) -> None:
    """Against every choice: no smaller one reaches the half-width, and none of this size is better."""
    sizes = np.array([size for size, _, _ in drawn])
    labelled = np.array([min(size, of) for size, of, _ in drawn])
    spreads = np.array([spread for _, _, spread in drawn])

    def variance(numbers: Sequence[int]) -> float:
        return fixed + float(spreads @ (1 / np.array(numbers) - 1 / sizes))

    def width(numbers: Sequence[int]) -> float:
        quantile = two_sided_quantile(np.array(max(1.0, sum(numbers) - len(sizes))))
        return float(quantile * np.sqrt(max(0.0, variance(numbers))))

    first = np.maximum(labelled, np.minimum(2, sizes))
    choices = list(product(*(range(one, size + 1) for one, size in zip(first, sizes, strict=True))))
    # Fewer than five clusters have no interval.
    enough = [one for one in choices if width(one) <= half_width and sum(one) >= min(5, sum(sizes))]
    found = labels_needed(sizes, labelled, spreads, fixed, half_width)
    if found is None:
        assert not enough
    else:
        assert sum(found) == min(map(sum, enough))
        assert (
            variance(found.tolist()) <= min(variance(one) for one in enough if sum(one) == sum(found)) + 1e-12
        )


def test_as_many_more_labels_as_promised_halve_the_interval() -> None:
    random = np.random.default_rng(4)
    truth = (random.random(20_000) < 0.6).astype(float)
    read = np.where(random.random(20_000) < 0.85, truth, 1 - truth)
    before = simple(truth[:150], read)
    more = clusters_to_halve(before, 20_000)
    assert more is not None
    after = simple(truth[: 150 + more], read)
    ratio = np.sqrt(after.corrected.variances[0] / before.corrected.variances[0])
    assert ratio == pytest.approx(0.5, abs=0.06)  # both variances are estimates
    assert clusters_to_halve(simple(truth[:150], read[:200]), 200) is None


def appendix(folder: Path) -> tuple[Floats, Floats, Floats]:
    """The 161 appendix responses that the captions judge: by image, how many there are, how many are right,
    and how many contain the reference's words: a poor judge."""
    lines = (folder / "data/contextual/appendix_cases.jsonl").read_text().splitlines()
    rows = []
    for case in map(json.loads, lines):
        judged = [one for one in case["responses"] if one["verdict"]]
        wanted = set(case["reference"].lower().split())
        read = [len(wanted & set(one["response"].lower().split())) / len(wanted) > 0.5 for one in judged]
        rows.append((len(judged), sum(one["verdict"] == "correct" for one in judged), sum(read)))
    used = np.array([row for row in rows if row[0]], dtype=float)
    return used[:, 0], used[:, 1], used[:, 2]


def test_a_third_of_the_appendix_holds_the_value_of_all_of_it(shared: Path) -> None:
    """1,000 random thirds of the 27 or so images of ConTextual's appendix: few clusters, a share of 16 %."""
    counts, truth, read = appendix(shared)
    assert counts.sum() == 161
    random, value = np.random.default_rng(0), truth.sum() / counts.sum()
    held = 0
    for _ in range(1_000):
        sample = random.choice(len(counts), len(counts) // 3, replace=False)
        found = correct(
            ClusterTerms(read, counts),
            ClusterTerms(truth[sample], counts[sample]),
            sample,
            np.ones(len(sample)),
        )
        (interval,) = intervals(found.corrected, [(0, 1)])
        assert not isinstance(interval, str)
        held += interval.low <= value <= interval.high
    assert held >= 920
