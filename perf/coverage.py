"""Measures how often the 95 % confidence intervals hold the true value: simulations of known populations.

    python perf/coverage.py            20,000 trials for ratios, 2,000 for ROC-AUC and the like
    python perf/coverage.py --short    a tenth of the trials, as in CI

Every trial draws clusters from a population whose value is known, and asks the functions that reports use for
the interval. The standard error of a share of 95 % is 0.15 points with 20,000 trials and 0.5 points with
2,000. Seeded: the table is the same in each run.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from sightline.evaluation.corrected import ClusterTerms, correct
from sightline.metrics.association import KAPPA, ROC_AUC, SPEARMAN, Statistic, statistic_value, value_of
from sightline.metrics.statistics import Floats, Interval, difference_intervals, intervals, ratio_intervals
from sightline.types import Range

CLUSTERS = (5, 7, 10, 12, 20, 50, 200)
LABELS = (20, 50, 200)
TRIALS, STATISTIC_TRIALS, LABELLED_TRIALS = 20_000, 2_000, 2_000
ANSWERS = 4
"""The number of answers of a cluster, for ROC-AUC, Spearman and kappa."""

Draw = Callable[[np.random.Generator, tuple[int, int]], tuple[Floats, Floats]]
"""Draws sums and counts of a given shape (trials, clusters)."""


class Population(NamedTuple):
    """A population of clusters: its name, true value, range, how it is drawn, and whether its units are
    graded; with a range from below 0 to above 0, it is a difference of two runs."""

    name: str
    truth: float
    bounds: Range
    draw: Draw
    graded: bool = False

    @property
    def is_difference(self) -> bool:
        """Whether its values are differences of two runs."""
        return self.bounds[0] is not None and self.bounds[0] < 0


class JudgedPopulation(NamedTuple):
    """A population of judged answers: its name, a statistic, and how levels and truth are drawn for a number
    of clusters."""

    name: str
    statistic: Statistic
    draw: Callable[[np.random.Generator, int], tuple[Floats, Floats]]


def one_unit(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Clusters of one unit."""
    return np.ones(shape)


def five_units(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Clusters of five units."""
    return np.full(shape, 5.0)


def unequal(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Clusters of 1 to 6 units."""
    return random.choice([1.0, 2, 2, 3, 6], shape)


Sizes = Callable[[np.random.Generator, tuple[int, int]], Floats]


def shares(share: float, sizes: Sizes, correlation: float = 0.35) -> Draw:
    """Units that are right or wrong; those of a cluster are correlated (beta-binomial)."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        counts, odds = sizes(random, shape), 1 / correlation - 1
        own = random.beta(share * odds, (1 - share) * odds, shape)
        return random.binomial(counts.astype(np.int64), own).astype(np.float64), counts

    return draw


def larger_is_easier(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Units that are right in 30 % of small clusters and in 70 % of large ones."""
    counts = unequal(random, shape)
    return random.binomial(counts.astype(np.int64), np.where(counts > 2, 0.7, 0.3)).astype(float), counts


def differences(gained: float, lost: float, sizes: Sizes) -> Draw:
    """Units that one of two runs gains, loses, or neither; the rates of a cluster vary (Dirichlet)."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        counts = sizes(random, shape)
        rates = np.array([gained, lost, 1 - gained - lost]) * (1 / 0.35 - 1)
        weights = random.gamma(rates[:, None, None], size=(3, *shape)) + 1e-300
        gains = random.binomial(counts.astype(np.int64), weights[0] / weights.sum(axis=0))
        rest = weights[1] / (weights[1] + weights[2])
        losses = random.binomial(counts.astype(np.int64) - gains, rest)
        return (gains - losses).astype(np.float64), counts

    return draw


def normal(sizes: Sizes) -> Draw:
    """Normal values; those of a cluster are correlated."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        counts = sizes(random, shape)
        means = 0.6 * random.standard_normal(shape)
        return counts * means + 0.8 * np.sqrt(counts) * random.standard_normal(shape), counts

    return draw


def lognormal(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Values whose logarithm is normal with a standard deviation of 1: a mean of 1.65, a median of 1."""
    return random.lognormal(size=shape), np.ones(shape)


def similarities(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Similarities between 0 and 1 that are skewed, with a mean of 0.8."""
    counts = unequal(random, shape)
    return counts * random.beta(2.4, 0.6, shape), counts


def changed_similarities(share: float, sizes: Sizes) -> Draw:
    """Differences of two similarities, with means of 0.8 and 0.7, in this share of units; the others stay."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        counts = sizes(random, shape)
        differ = random.binomial(counts.astype(np.int64), share)
        return differ * (random.beta(2.1, 0.9, shape) - random.beta(2.4, 0.6, shape)), counts

    return draw


def ranked(distance: float) -> Callable[[np.random.Generator, int], tuple[Floats, Floats]]:
    """Scores of right and wrong answers whose means differ by a distance; clusters differ too."""

    def draw(random: np.random.Generator, clusters: int) -> tuple[Floats, Floats]:
        truth = _truth(random, clusters)
        noise = 0.84 * random.standard_normal(len(truth))
        return distance * truth + noise + np.repeat(0.55 * random.standard_normal(clusters), ANSWERS), truth

    return draw


def judged(right: float) -> Callable[[np.random.Generator, int], tuple[Floats, Floats]]:
    """Verdicts that are right with a probability that varies between clusters."""

    def draw(random: np.random.Generator, clusters: int) -> tuple[Floats, Floats]:
        truth = _truth(random, clusters)
        able = np.repeat(random.beta(4 * right, 4 * (1 - right), clusters), ANSWERS)
        return np.where(random.random(len(truth)) < able, truth, 1 - truth), truth

    return draw


PROMISED = (
    Population("normal, one unit a cluster", 0, (None, None), normal(one_unit)),
    Population("normal, 1 to 6 units", 0, (None, None), normal(unequal)),
    *(
        Population(f"share {share}, {name}", share, (0, 1), shares(share, sizes))
        for share in (0.2, 0.5, 0.8)
        for name, sizes in (("one unit", one_unit), ("five units", five_units), ("1 to 6 units", unequal))
    ),
    Population("share 0.56, larger clusters easier", 0.3 + 0.4 * 9 / 14, (0, 1), larger_is_easier),
    Population("similarity 0.8, skewed, 1 to 6 units", 0.8, (0, 1), similarities, graded=True),
    Population("difference 0.2 (30 % gained, 10 % lost)", 0.2, (-1, 1), differences(0.3, 0.1, unequal)),
    Population("difference 0 (30 % gained, 30 % lost)", 0, (-1, 1), differences(0.3, 0.3, one_unit)),
    Population(
        "similarities, difference -0.1, 1 to 6 units", -0.1, (-2, 2), changed_similarities(1, unequal), True
    ),
    Population(
        "similarities, difference -0.1, one unit", -0.1, (-2, 2), changed_similarities(1, one_unit), True
    ),
)
"""The populations for which 93 to 98 % are promised from 10 clusters on."""

OTHERS = (
    Population("share 0.05, 1 to 6 units", 0.05, (0, 1), shares(0.05, unequal)),
    Population("share 0.02, five units", 0.02, (0, 1), shares(0.02, five_units)),
    Population("difference 0.05 (6 % gained, 1 % lost)", 0.05, (-1, 1), differences(0.06, 0.01, unequal)),
    Population(
        "similarities, one unit of ten differs", -0.01, (-2, 2), changed_similarities(0.1, one_unit), True
    ),
    Population("lognormal, without bounds", float(np.exp(0.5)), (None, None), lognormal),
)
"""Skewed populations and extreme shares."""

JUDGED = (
    JudgedPopulation("ROC-AUC 64, scores", ROC_AUC, ranked(0.5)),
    JudgedPopulation("ROC-AUC 86, scores", ROC_AUC, ranked(1.5)),
    JudgedPopulation("ROC-AUC 90, verdicts", ROC_AUC, judged(0.9)),
    JudgedPopulation("Spearman 0.62", SPEARMAN, ranked(1.5)),
    JudgedPopulation("kappa 0.40", KAPPA, judged(0.7)),
    JudgedPopulation("kappa 0.80", KAPPA, judged(0.9)),
)


DrawLabelled = Callable[[np.random.Generator, int], tuple[ClusterTerms, ClusterTerms]]
"""Draws the terms of a number of clusters by the humans and by the judge."""


class LabelledPopulation(NamedTuple):
    """A population of clusters that a judge read, and humans in part.

    Attributes:
        name: The name.
        truth: The share of right units by humans.
        clusters: The number of clusters that the judge read.
        draw: Draws the right units and all units of each cluster, by the humans and by the judge.
        stratified: Whether humans label clusters of which the judge calls less than half right four times as
            often as others.
    """

    name: str
    truth: float
    clusters: int
    draw: DrawLabelled
    stratified: bool = False


def read_by_units(share: float, right: float, wrong: float, correlation: float = 0.35) -> DrawLabelled:
    """A judge that calls these shares of right and wrong units so; it errs more on a third of them."""

    def draw(random: np.random.Generator, clusters: int) -> tuple[ClusterTerms, ClusterTerms]:
        counts, odds = unequal(random, (1, clusters))[0], 1 / correlation - 1
        of = np.repeat(np.arange(clusters), counts.astype(np.int64))
        truth = random.random(len(of)) < random.beta(share * odds, (1 - share) * odds, clusters)[of]
        harder = np.where(random.random(len(of)) < 0.3, -0.25, 0.1)
        able = np.clip(np.where(truth, right, wrong) + harder, 0, 1)
        read = np.where(random.random(len(of)) < able, truth, ~truth)
        own, judged = (np.bincount(of, one, clusters).astype(np.float64) for one in (truth, read))
        return ClusterTerms(own, counts), ClusterTerms(judged, counts)

    return draw


def read_by_clusters(share: float, right: float, wrong: float) -> DrawLabelled:
    """A judge whose rates differ between clusters: it errs on many units of some."""

    def draw(random: np.random.Generator, clusters: int) -> tuple[ClusterTerms, ClusterTerms]:
        (truth,), (counts,) = shares(share, unequal)(random, (1, clusters))
        of_right, of_wrong = (random.beta(4 * rate, 4 * (1 - rate), clusters) for rate in (right, 1 - wrong))
        read = random.binomial(truth.astype(int), of_right)
        read += random.binomial((counts - truth).astype(int), of_wrong)
        return ClusterTerms(truth, counts), ClusterTerms(read.astype(np.float64), counts)

    return draw


def read_pairs(share: float, right: float, wrong: float) -> DrawLabelled:
    """One pair a cluster, which is right if both answers are."""

    def draw(random: np.random.Generator, clusters: int) -> tuple[ClusterTerms, ClusterTerms]:
        truth = random.random((2, clusters)) < math.sqrt(share)
        able = np.where(truth, right, wrong)
        read = np.where(random.random((2, clusters)) < able, truth, ~truth)
        one = np.ones(clusters)
        return ClusterTerms(np.minimum(*truth) * one, one), ClusterTerms(np.minimum(*read) * one, one)

    return draw


def read_and_counted(share: float, right: float, counted: float) -> DrawLabelled:
    """A ratio: three of ten units do not count. The judge calls this share of right and wrong units so, and
    counts this share of the units as the humans do; it calls half of those right that humans do not count."""

    def draw(random: np.random.Generator, clusters: int) -> tuple[ClusterTerms, ClusterTerms]:
        counts = unequal(random, (1, clusters))[0].astype(np.int64)
        of = np.repeat(np.arange(clusters), counts)
        odds = 1 / 0.35 - 1
        truth = random.random(len(of)) < random.beta(share * odds, (1 - share) * odds, clusters)[of]
        counts_too = random.random(len(of)) < 0.7
        read = np.where(random.random(len(of)) < np.where(counts_too, right, 0.5), truth, ~truth)
        agreed = np.where(random.random(len(of)) < counted, counts_too, ~counts_too)
        own, judged = (
            ClusterTerms(
                *(np.bincount(of, one, clusters).astype(np.float64) for one in (value & units, units))
            )
            for value, units in ((truth, counts_too), (read, agreed))
        )
        return own, judged

    return draw


LABELLED = (
    LabelledPopulation("share 0.55, judge 90/85, 400 clusters", 0.55, 400, read_by_units(0.55, 0.9, 0.85)),
    LabelledPopulation("share 0.55, judge 90/85, 60 clusters", 0.55, 60, read_by_units(0.55, 0.9, 0.85)),
    LabelledPopulation("share 0.55, poor judge 75/70", 0.55, 400, read_by_units(0.55, 0.75, 0.7)),
    LabelledPopulation("share 0.55, lenient judge 95/60", 0.55, 400, read_by_units(0.55, 0.95, 0.6)),
    LabelledPopulation("share 0.8, judge 90/85", 0.8, 400, read_by_units(0.8, 0.9, 0.85)),
    LabelledPopulation(
        "share 0.55, judge 90/85 errs by cluster", 0.55, 400, read_by_clusters(0.55, 0.9, 0.85)
    ),
    LabelledPopulation("share 0.2, judge errs by cluster", 0.2, 400, read_by_clusters(0.2, 0.9, 0.85)),
    LabelledPopulation("pairs 0.3, judge 90/85", 0.3, 400, read_pairs(0.3, 0.9, 0.85)),
    LabelledPopulation("pairs 0.5, judge 95/70", 0.5, 400, read_pairs(0.5, 0.95, 0.7)),
    LabelledPopulation("stratified, judge 90/85", 0.55, 400, read_by_units(0.55, 0.9, 0.85), True),
)
"""The populations for which 93 to 99 % are promised from 20 labelled clusters on."""

LABELLED_SHARES = tuple(
    LabelledPopulation(f"share {share}, {judge}", share, 400, draw)
    for share in (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    for judge, draw in (
        ("judge 90/85", read_by_units(share, 0.9, 0.85)),
        ("poor judge 75/70", read_by_units(share, 0.75, 0.7)),
        ("judge 90/85 errs by cluster", read_by_clusters(share, 0.9, 0.85)),
        ("judge 99/99 errs by cluster", read_by_clusters(share, 0.99, 0.99)),
        ("ratio, judge 90, counts 90 as humans", read_and_counted(share, 0.9, 0.9)),
    )
)
"""Shares from 5 to 95 %, for which 93 to 99.3 % are promised, and no bias."""

LABELLED_EXTREMES = (
    LabelledPopulation("share 0.97, judge 90/85", 0.97, 400, read_by_units(0.97, 0.9, 0.85)),
    LabelledPopulation("share 0.55, judge 99/99", 0.55, 400, read_by_clusters(0.55, 0.99, 0.99)),
    LabelledPopulation("share 0.97, judge 99/99", 0.97, 400, read_by_clusters(0.97, 0.99, 0.99)),
    LabelledPopulation("pairs 0.9, judge 99/99", 0.9, 400, read_pairs(0.9, 0.99, 0.99)),
)
"""Extreme shares, and judges that hardly err: a small sample shows no error."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of intervals that hold the true value, by population and number of clusters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a tenth of the trials")
    part = 10 if parser.parse_args(arguments).short else 1
    print("| true value | " + " | ".join(map(str, CLUSTERS)) + " |")
    print("| --- |" + " ---: |" * len(CLUSTERS))
    for population in (*PROMISED, *OTHERS):
        held = [coverage(population, clusters, TRIALS // part) for clusters in CLUSTERS]
        print(_row(population.name, held), flush=True)
    for judged_population in JUDGED:
        held = [judged_coverage(judged_population, n, STATISTIC_TRIALS // part) for n in CLUSTERS[:-1]]
        print(_row(judged_population.name, held) + " |", flush=True)
    print("\n| corrected by humans |" + "".join(f" {n}: bias | held | width |" for n in LABELS))
    print("| --- |" + " ---: |" * 3 * len(LABELS))
    for labelled_population in (*LABELLED, *LABELLED_SHARES, *LABELLED_EXTREMES):
        cells = [
            _corrected_cell(corrected_coverage(labelled_population, labelled, LABELLED_TRIALS // part))
            for labelled in LABELS
            if labelled < labelled_population.clusters
        ]
        print(f"| {labelled_population.name} | {' | '.join(cells)} |", flush=True)
    return 0


def coverage(population: Population, clusters: int, trials: int) -> float:
    """The share of trials whose 95 % CI holds the true value.

    Args:
        population: The population.
        clusters: The number of clusters of a trial.
        trials: The number of trials.

    Returns:
        The share, 0-1, of the trials that have an interval.
    """
    sums, counts = population.draw(np.random.default_rng(clusters), (trials, clusters))
    find = difference_intervals if population.is_difference else ratio_intervals
    found = find(sums, counts, [population.bounds] * trials, graded=population.graded)
    return _held([(one.low, one.high) for one in found if not isinstance(one, str)], population.truth)


def judged_coverage(population: JudgedPopulation, clusters: int, trials: int) -> float:
    """The share of trials whose 95 % CI of a statistic holds the true value.

    Args:
        population: The population.
        clusters: The number of clusters of a trial.
        trials: The number of trials.

    Returns:
        The share, 0-1, of the trials that have an interval.
    """
    random = np.random.default_rng(clusters)
    statistic = population.statistic
    truth = true_value(population)
    names = np.repeat(np.arange(clusters), ANSWERS).tolist()
    values = [statistic_value(statistic, *population.draw(random, clusters), names) for _ in range(trials)]
    scale = 100 if statistic.unit == "percent" else 1
    bounds = [(one.low, one.high) for one in values if one.low is not None and one.high is not None]
    return _held(bounds, scale * truth)


class CorrectedCoverage(NamedTuple):
    """The share of corrected intervals that hold the true value, and the mean widths, all 0-1.

    Attributes:
        bias: The mean corrected value minus the true one.
        error: The standard error of `bias`.
    """

    held: float
    bias_held: float
    human: float
    corrected: float
    bias: float
    error: float


def corrected_coverage(population: LabelledPopulation, labelled: int, trials: int) -> CorrectedCoverage:
    """Measure how often corrected intervals hold the true value.

    Args:
        population: The population.
        labelled: The number of clusters that humans label (on average, in a stratified sample).
        trials: The number of trials.

    Returns:
        The share of the trials that have an interval, and the widths of the intervals.
    """
    random = np.random.default_rng(labelled)
    bias = _true_bias(population)
    values = np.zeros(trials)
    bounds: list[tuple[Interval, Interval, Interval]] = []
    for trial in range(trials):
        human, judged = population.draw(random, population.clusters)
        odds = np.where(population.stratified & (judged.sums < judged.counts / 2), 4.0, 1.0)
        chance = labelled * odds / odds.sum()
        if population.stratified:
            sample = np.flatnonzero(random.random(len(odds)) < chance)
        else:
            sample = random.choice(len(odds), labelled, replace=False)
        labels = ClusterTerms(human.sums[sample], human.counts[sample])
        found = correct(judged, labels, sample, chance[sample])
        values[trial] = np.clip(found.corrected.values[0], 0, 1)
        one = tuple(
            intervals(estimates, [interval_range])[0]
            for estimates, interval_range in (
                (found.corrected, (0, 1)),
                (found.bias, (-1, 1)),
                (found.human, (0, 1)),
            )
        )
        bounds += [one] if not any(isinstance(each, str) for each in one) else []  # type: ignore[list-item]
    own, biases, alone = zip(*bounds, strict=True)
    return CorrectedCoverage(
        _held([(one.low, one.high) for one in own], population.truth),
        _held([(one.low, one.high) for one in biases], bias),
        float(np.mean([one.high - one.low for one in alone])),
        float(np.mean([one.high - one.low for one in own])),
        float(values.mean()) - population.truth,
        float(values.std()) / math.sqrt(trials),
    )


def _true_bias(population: LabelledPopulation) -> float:
    """The judge's share of right units minus the humans', of very many clusters."""
    human, judged = population.draw(np.random.default_rng(0), 400_000)
    return float(judged.sums.sum() / judged.counts.sum() - human.sums.sum() / human.counts.sum())


@cache
def true_value(population: JudgedPopulation) -> float:
    """The statistic of very many answers, before scaling."""
    return value_of(population.statistic, *population.draw(np.random.default_rng(0), 100_000)) or 0.0


def _held(bounds: Sequence[tuple[float, float]], truth: float) -> float:
    low, high = np.array(bounds).T
    return float(((low <= truth) & (truth <= high)).mean())


def _truth(random: np.random.Generator, clusters: int) -> Floats:
    """Right and wrong answers; clusters differ in how many are right."""
    able = np.repeat(random.beta(1.2, 1.2, clusters), ANSWERS)
    return (random.random(len(able)) < able).astype(np.float64)


def _corrected_cell(found: CorrectedCoverage) -> str:
    bias, error = 100 * found.bias, 100 * found.error
    widths = f"{100 * found.corrected:.1f} instead of {100 * found.human:.1f}"
    return f"{bias:+.2f} ± {error:.2f} | {100 * found.held:.1f} | {widths}"


def _row(name: str, held: Sequence[float]) -> str:
    return f"| {name} | " + " | ".join(f"{100 * share:.1f}" for share in held) + " |"


if __name__ == "__main__":
    sys.exit(main())
