"""Significance tests of the difference between two runs, on arrays of differences within groups.

ConTextual 3.3.1 compares models by the paired t test. Groups that share an image are not independent. The t
test and McNemar's test ignore that; the cluster sign-flip permutation test does not, and decides. All
p-values are two-sided, 0-1."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.metrics.flips import ComparedAnswers, GroupPair
from sightline.metrics.statistics import LEVEL, POWER_80, Floats, Interval, difference_intervals
from sightline.metrics.tally import Terms, TermTable, VerdictPattern, verdict_pattern
from sightline.scoring.similarity import PRECISION
from sightline.types import (
    Group,
    ImageSize,
    Labels,
    Metric,
    MetricDefinition,
    MetricValue,
    Spent,
    Term,
    Unit,
    difference_range,
    each_value,
)

_EXACT = 100_000
"""The number of sums up to which all flips are counted. Sums of fractions with a common denominator are
counted by dynamic programming, any others one by one. Beyond it, DRAWS random flips are counted."""

_ADDITIONS = 1_000_000_000
"""The number of additions, clusters x sums, up to which dynamic programming counts: half a second."""

_DENOMINATOR = 1000
"""The largest denominator of a sum of a cluster, and of all of them together."""

DRAWS = 10_000

_BLOCK = 1 << 21
"""Signs that are drawn at a time: some tens of MB."""

_CLOSE = 1e-9
"""The tolerance for rounding, as a fraction of the largest sum of a cluster."""


class PairedValues(NamedTuple):
    """The values of groups in two runs, and the number of each group's cluster, all of shape (groups,)."""

    before: Floats
    after: Floats
    clusters: NDArray[np.intp]


class FlipTest(NamedTuple):
    """A p-value of flipped clusters; `draws` is the number of random flips, 0 if all were counted."""

    p: float
    draws: int = 0


class Significance(Struct, frozen=True):
    """The p-values of a difference; None if a test is undefined or was not asked for.

    `draws` is the number of random flips that `p` is from: it is never below 1 / (1 + draws). 0: it is exact.
    """

    p: float | None
    t: float | None
    mcnemar: float | None
    detectable: float | None
    holm: float | None = None
    benjamini_hochberg: float | None = None
    draws: int = 0

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is at most LEVEL."""
        return self.holm is not None and self.holm <= LEVEL


def significance(rows: Sequence[PairedValues], *, asides: bool = True) -> list[Significance]:
    """Test every row of a table and correct the p-values for the number of rows.

    Without `asides`, there are no t test and no McNemar's test, which decide nothing: for them scipy.special
    is imported, a tenth of the time of a comparison.
    """
    return _with_corrections([_tested(row, asides=asides) for row in rows])


def _with_corrections(tests: Sequence[Significance]) -> list[Significance]:
    plain = [one.p for one in tests]
    return [
        replace(one, holm=strict, benjamini_hochberg=mild)
        for one, strict, mild in zip(tests, holm(plain), benjamini_hochberg(plain), strict=True)
    ]


def corrected_together(
    tables: Sequence[Mapping[MetricSubset, Significance]],
) -> list[dict[MetricSubset, Significance]]:
    """Correct the p-values of several tables for the number of all their rows."""
    corrected = iter(_with_corrections([one for table in tables for one in table.values()]))
    return [{name: next(corrected) for name in table} for table in tables]


def flip_clusters(differences: Floats, clusters: NDArray[np.intp]) -> FlipTest:
    """The p-value of a mean difference by a cluster sign-flip permutation test.

    Under the null hypothesis the two runs are exchangeable within each cluster. The p-value is the
    probability of a mean at least as far from 0. It counts all flips if they have few enough sums,
    otherwise DRAWS random flips and the observed one. With one right-or-wrong group per cluster it is
    McNemar's exact test.

    >>> flip_clusters(np.array([1.0, 1, 1, 1, 1, 1]), np.arange(6))
    FlipTest(p=0.03125, draws=0)
    """
    sums = np.bincount(clusters, differences).astype(np.float64)
    # Rounding errors of equal similarities are not differences.
    largest = np.abs(sums).max(initial=0)
    if largest < _CLOSE:
        return FlipTest(1.0)
    whole = _as_whole_numbers(sums)
    if whole is not None:
        return FlipTest(_of_whole_numbers(whole))
    # Among clusters of one size the number of positive signs is binomial.
    sizes, counts = np.unique(np.round(np.abs(sums) / largest, 12), return_counts=True)
    sizes, counts = sizes[sizes > 0], counts[sizes > 0]
    least = abs(float(sums.sum())) / float(largest) - _CLOSE
    if math.prod(int(count) + 1 for count in counts) <= _EXACT:
        totals, probabilities = _all_flips(sizes, counts)
        return FlipTest(min(1.0, float(probabilities[np.abs(totals) >= least].sum())))
    drawn = _drawn_flips(np.repeat(sizes, counts))
    far = sum(int(np.count_nonzero(np.abs(totals) >= least)) for totals in drawn)
    return FlipTest((1 + far) / (1 + DRAWS), DRAWS)


def paired_t(differences: Floats) -> float | None:
    """The p-value of the paired t test (ConTextual 3.3.1), which takes groups as independent; None with fewer
    than two groups, or if all differences are equal.
    """
    n = len(differences)
    if n < 2 or (differences == differences[0]).all():
        return None
    freedom, spread = n - 1, float(differences.var(ddof=1))
    if not spread:
        return None
    from scipy.special import betainc, betaincc

    square = n * float(differences.mean()) ** 2 / spread
    if square > freedom:
        return float(betainc(freedom / 2, 0.5, freedom / (freedom + square)))
    # 1 - x is exact here, x is rounded.
    return float(betaincc(0.5, freedom / 2, square / (freedom + square)))


def mcnemar(lost: int, won: int) -> float:
    """The p-value of McNemar's exact test.

    Args:
        lost: The number of groups that only the first run has right.
        won: The number of groups that only the second run has right.

    >>> round(mcnemar(0, 6), 5)
    0.03125
    """
    least, n = min(lost, won), lost + won
    if 2 * least >= n:
        return 1.0
    from scipy.special import betainc

    return min(1.0, 2 * float(betainc(n - least, least + 1, 0.5)))


def detectable_difference(differences: Floats, clusters: NDArray[np.intp]) -> float | None:
    """The mean difference that such data detect with a power of 80 % at the two-sided 5 % level.

    It uses the standard error between clusters and the normal distribution.

    Returns:
        The difference; None with fewer than two clusters, or if nothing varies.
    """
    error = clustered_error(differences, clusters)
    return POWER_80 * error if error else None


def expected_detectable(n: int, changed: float) -> float:
    """The difference of two shares over the same n groups that is detected with a power of 80 %, 0-1.

    `changed`: the expected share of groups that are right in one of the two only, above 0 and at most 1. It
    solves difference = POWER_80 x sqrt((changed - difference^2) / n).
    """
    return POWER_80 * math.sqrt(changed / (n + POWER_80**2))


def clustered_error(differences: Floats, clusters: NDArray[np.intp]) -> float | None:
    """The cluster-robust standard error of a mean; None with fewer than two clusters."""
    _, places = np.unique(clusters, return_inverse=True)
    sums = np.bincount(places, differences - differences.mean()) if len(places) else np.empty(0)
    if len(sums) < 2:
        return None
    return math.sqrt(len(sums) / (len(sums) - 1) * float(sums @ sums)) / len(differences)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of p-values for multiple comparisons (Holm 1979). `p_values`: the p-values; None
    stays None and does not count as a test.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    return _corrected(p_values, lambda rising, ranks: np.maximum.accumulate(rising * ranks[::-1]))


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """The correction of p-values that controls the false discovery rate (Benjamini and Hochberg 1995).

    Args:
        p_values: The p-values; None stays None and does not count as a test.

    >>> benjamini_hochberg([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    return _corrected(
        p_values,
        lambda rising, ranks: np.minimum.accumulate((rising * len(ranks) / ranks)[::-1])[::-1],
    )


def _tested(row: PairedValues, *, asides: bool) -> Significance:
    differences = row.after - row.before
    binary = np.isin((row.before, row.after), (0, 1)).all()
    lost, won = int((differences < 0).sum()), int((differences > 0).sum())
    flipped = flip_clusters(differences, row.clusters) if len(differences) else None
    return Significance(
        p=flipped.p if flipped else None,
        draws=flipped.draws if flipped else 0,
        t=paired_t(differences) if asides else None,
        mcnemar=mcnemar(lost, won) if asides and binary and len(differences) else None,
        detectable=detectable_difference(differences, row.clusters),
    )


def _as_whole_numbers(sums: Floats) -> NDArray[np.int64] | None:
    """The sums of clusters as multiples of one unit, without zeros; None without a unit large enough."""
    common = 1
    for value in np.unique(np.abs(sums)).tolist():
        common = math.lcm(common, Fraction(value).limit_denominator(_DENOMINATOR).denominator)
        if common > _DENOMINATOR:
            return None
    scaled = sums * common
    if (np.abs(scaled - np.rint(scaled)) > _CLOSE * np.abs(scaled).max()).any():
        return None
    whole = np.rint(scaled[np.rint(scaled) != 0]).astype(np.int64)
    whole //= np.gcd.reduce(whole)
    most = int(np.abs(whole).sum())
    return whole if most <= _EXACT and most * len(whole) <= _ADDITIONS else None


def _of_whole_numbers(sums: NDArray[np.int64]) -> float:
    """The share of all sign flips whose sum is at least as far from 0, by dynamic programming."""
    most, observed = int(np.abs(sums).sum()), abs(int(sums.sum()))
    if not observed:
        return 1.0
    # The probability of each total of the clusters that are flipped to minus; only additions, so that small
    # probabilities are as precise as large ones.
    shares = np.zeros(most + 1)
    shares[0], end = 1.0, 1
    for size in np.sort(np.abs(sums)).tolist():
        half = shares[:end] / 2
        shares[:end] = half
        shares[size : size + end] += half
        end += size
    return min(1.0, 2 * float(shares[: (most - observed) // 2 + 1].sum()))


def _all_flips(sizes: Floats, counts: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Every sum that flipping clusters of these sizes can give, and its probability."""
    totals, probabilities = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        upward = np.arange(count + 1)
        ways = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in upward]
        share = np.exp(np.array(ways) - count * math.log(2))
        totals = (totals[:, None] + size * (2 * upward - count)).ravel()
        probabilities = (probabilities[:, None] * share).ravel()
    return totals, probabilities


def _drawn_flips(sizes: Floats) -> Iterator[Floats]:
    """DRAWS sums of clusters with random signs, in blocks."""
    generator = np.random.Generator(np.random.PCG64(0))
    rows = max(1, _BLOCK // len(sizes))
    for start in range(0, DRAWS, rows):
        upward = generator.integers(0, 2, (min(rows, DRAWS - start), len(sizes)), dtype=np.int8)
        yield (2 * upward - 1) @ sizes


def _corrected(
    p_values: Sequence[float | None], correct: Callable[[Floats, Floats], Floats]
) -> list[float | None]:
    """Correct p-values by a function of the ascending p-values and their ranks, 1 for the smallest."""
    known = np.array([p_value for p_value in p_values if p_value is not None])
    order = np.argsort(known, kind="stable")
    corrected = np.empty(len(known))
    corrected[order] = np.minimum(1, correct(known[order], np.arange(1.0, len(known) + 1)))
    values = iter(corrected.tolist())
    return [None if p_value is None else next(values) for p_value in p_values]


# -- The change of a metric from one run to another, as a difference within each group

Counterpart = Callable[[Group], Group]
"""Returns the same group of the other run, with the judgements of that run."""

NO_SHARED_GROUP = "no group has a value in both runs"


class Part(NamedTuple):
    """A value of a group: overall, and under each of these labels, or under the labels only."""

    labels: Labels
    overall: bool
    value: float


class PartInBoth(NamedTuple):
    """The values of a group in two runs, as in `Part`."""

    labels: Labels
    overall: bool
    before: float
    after: float


def mean_of_shared_groups(metric: Metric, counterpart_metric: Metric, counterpart: Counterpart) -> Metric:
    """A metric of one run as the mean over the groups that have a value in both runs.

    Each group counts once, whatever its number of answers: the difference of the values of both runs is the
    mean difference of `difference`.
    """

    def terms(group: Group) -> list[Term]:
        both = _both(metric, counterpart_metric, counterpart(group), group)
        return [Term(here, 1, labels, overall) for labels, overall, _, here in both]

    return replace(metric, terms=terms, absent=NO_SHARED_GROUP, reads="answers")


def difference(metric: Metric, base: Metric, before: Counterpart) -> Metric:
    """A metric as the difference of two runs, averaged over groups.

    Under a label it is the difference of the terms with that label.
    """

    def terms(group: Group) -> list[Term]:
        both = _both(metric, base, before(group), group)
        return [Term(here - there, 1, labels, overall) for labels, overall, there, here in both]

    unit: Unit = "points" if metric.unit == "percent" else metric.unit
    return replace(
        metric,
        terms=terms,
        reads="answers",
        range=difference_range(metric.range),
        unit=unit,
        absent=NO_SHARED_GROUP,
    )


class CurrentPair:
    """The pair of groups that tables add, as the metrics of both runs read it."""

    def __init__(self) -> None:
        self._pair: GroupPair | None = None
        self._stand_ins: GroupPair | None = None
        self._patterns: tuple[VerdictPattern | None, VerdictPattern | None] | None = None

    def take(self, pair: GroupPair) -> None:
        self._pair, self._patterns = pair, None

    def before(self, group: Group) -> Group:
        """The group of the base run."""
        return self._of(group, 0)

    def after(self, group: Group) -> Group:
        return self._of(group, 1)

    def _of(self, group: Group, side: int) -> Group:
        assert self._pair is not None
        stand_ins = self._stand_ins
        return stand_ins[side] if stand_ins and group is stand_ins[1 - side] else self._pair[side]

    def pattern(self, group: Group, *, letters: bool) -> VerdictPattern | None:
        """The verdicts of both groups, where all answers have the same labels."""
        assert self._pair is not None
        if self._patterns is None:
            base, other = (verdict_pattern(one, letters=letters) for one in self._pair)
            if len(other.labels) > 1 or base.labels != other.labels:
                self._patterns = None, None
            else:
                self._patterns = self._pattern_of(base, other, 0), self._pattern_of(base, other, 1)
        return self._patterns[group is self._pair.other]

    def _pattern_of(self, base: VerdictPattern, other: VerdictPattern, side: int) -> VerdictPattern:
        def stand_in() -> Group:
            self._stand_ins = GroupPair(base.stand_in(), other.stand_in())
            return self._stand_ins[side]

        return VerdictPattern((base.key, other.key), other.labels, stand_in)


class PairedTally:
    """The values that `difference` averages over, from groups that are added one by one."""

    def __init__(self, metrics: Sequence[tuple[Metric, Metric]]) -> None:
        self._current = CurrentPair()
        before, after = means_of_both(metrics, self._current)
        self._tables = TermTable(before), TermTable(after)
        self._columns = range(len(metrics))

    def add(self, before: Group, after: Group) -> None:
        self._current.take(GroupPair(before, after))
        for table, group in zip(self._tables, (before, after), strict=True):
            table.add(group, has_undecided=False, pattern=self._current.pattern)

    def values(self) -> list[Mapping[str, PairedValues]]:
        """The two values of each group, by the names of subsets. It ends the stream."""
        for table in self._tables:
            table.end()
        return [PairedColumns(*self._tables, column) for column in self._columns]


def means_of_both(
    metrics: Sequence[tuple[Metric, Metric]], current: CurrentPair
) -> tuple[list[Metric], list[Metric]]:
    """The means of groups in the base run, and in the other; `metrics` has those of the other run first."""
    return (
        [
            _by_pair(mean_of_shared_groups(base, metric, current.after), metric, base)
            for metric, base in metrics
        ],
        [
            _by_pair(mean_of_shared_groups(metric, base, current.before), metric, base)
            for metric, base in metrics
        ],
    )


def differences(metrics: Sequence[tuple[Metric, Metric]], current: CurrentPair) -> list[Metric]:
    return [_by_pair(difference(metric, base, current.before), metric, base) for metric, base in metrics]


def _by_pair(compared: Metric, *both: Metric) -> Metric:
    reads = {metric.reads for metric in both}
    return replace(compared, reads=next(iter(reads)) if len(reads) == 1 else "answers")


class PairedColumns(Mapping[str, PairedValues]):
    """The values of a metric in both runs by the names of subsets, from the tables of both."""

    def __init__(self, before: TermTable, after: TermTable, column: int) -> None:
        self._tables = before, after
        self._column = column

    @cached_property
    def _terms(self) -> list[Terms]:
        return [table.of(self._column) for table in self._tables]

    def __getitem__(self, subset: str) -> PairedValues:
        if subset not in [*self]:
            raise KeyError(subset)
        (before, _), (after, clusters) = (
            table.of_subset(terms, subset) for table, terms in zip(self._tables, self._terms, strict=True)
        )
        return PairedValues(before, after, clusters)

    @cached_property
    def _subsets(self) -> list[str]:
        table, terms = self._tables[1], self._terms[1]
        return [name for name in table.names if len(table.of_subset(terms, name)[0])]

    def __iter__(self) -> Iterator[str]:
        return iter(self._subsets)

    def __len__(self) -> int:
        return len(self._subsets)


def _both(metric: Metric, base: Metric, earlier: Group, group: Group) -> list[PartInBoth]:
    """The values of a group in both runs, overall and under each label that both runs have.

    Values that differ by less than the precision of measurements by models are made equal: a part of 1 for
    percentages, otherwise of the larger value. Both orders of the runs give the same values.
    """
    absolute = 0.0 if metric.unit == "number" else PRECISION
    here, there = _means(metric, group), _means(base, earlier)
    if [part[:2] for part in here] != [part[:2] for part in there]:
        before = {_key(part): part for part in _each_label(there)}
        here = [part for part in _each_label(here) if _key(part) in before]
        there = [before[_key(part)] for part in here]
    both = []
    for (labels, overall, after), (_, _, value) in zip(here, there, strict=True):
        if value != after and math.isclose(value, after, rel_tol=PRECISION, abs_tol=absolute):
            value = after = (value + after) / 2
        both.append(PartInBoth(labels, overall, value, after))
    return both


def _means(metric: Metric, group: Group) -> list[Part]:
    """The mean over a group, which both sides and their difference need: each group keeps it."""
    return group.once((_means, metric.terms), lambda one: _means_of_terms(metric.terms(one), one))


def _means_of_terms(terms: Iterable[Term], group: Group) -> list[Part]:
    """The mean over a group: overall, and under each label over the terms with that label.

    The labels of the group are one part, unless terms have others, or some are not overall.
    """
    terms, whole = list(terms), group.labels
    sums: dict[tuple[bool, bool], tuple[float, float]] = {}
    for term in terms:
        labels = whole if term.labels is None else term.labels
        if labels and labels is not whole and labels != whole:
            return _mean_under_each(terms, whole)
        place = bool(labels), term.overall
        total, count = sums.get(place, (0.0, 0.0))
        sums[place] = total + term.sum, count + term.count
    if len(sums) > 1 and (True, True) in sums:
        return _mean_under_each(terms, whole)
    return [
        Part(whole if labelled else {}, overall, total / count)
        for (labelled, overall), (total, count) in sums.items()
        if count and (labelled or overall)
    ]


def _mean_under_each(terms: Iterable[Term], labels_of_group: Labels) -> list[Part]:
    sums: defaultdict[tuple[Any, ...], float] = defaultdict(float)
    counts: defaultdict[tuple[Any, ...], float] = defaultdict(float)
    for term in terms:
        labels = labels_of_group if term.labels is None else term.labels
        for key in [_key(part) for part in _each_label([Part(labels, term.overall, 0)])]:
            sums[key] += term.sum
            counts[key] += term.count
    return [Part(dict(key[1:]), key[0], total / counts[key]) for key, total in sums.items() if counts[key]]


def _each_label(parts: Iterable[Part]) -> Iterator[Part]:
    """The same values, overall and under each label by itself."""
    for labels, overall, value in parts:
        if overall:
            yield Part({}, True, value)
        for name, values in labels.items():
            yield from (Part({name: one}, False, value) for one in each_value(values))


def _key(part: Part) -> tuple[Any, ...]:
    return (part.overall, *part.labels.items())


# -- Non-inferiority and equivalence of the second of two runs within a margin

ONLY_POINTS = "the margin is in percentage points, and this metric is no percentage"
NO_DIRECTION = "neither direction of this metric is better"


class MarginVerdict(Struct, frozen=True):
    """Whether a run is within a margin of another one.

    Attributes:
        non_inferior: Whether the second run is not worse by the margin; None if that cannot be said.
        equivalent: Whether the difference is within the margin; None if that cannot be said.
        low: The lower bound of the 90 % confidence interval of the difference, in points; None without it.
        reason: Why a verdict is None; '' if none is.
    """

    non_inferior: bool | None = None
    equivalent: bool | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


def margin_verdict(values: PairedValues, definition: MetricDefinition, margin: float) -> MarginVerdict:
    """Test a difference for non-inferiority and for equivalence.

    Args:
        values: The values of the groups in both runs, 0-1 for percentages.
        margin: The margin in percentage points, above 0.
    """
    if definition.unit == "number":
        return MarginVerdict(reason=ONLY_POINTS)
    wide, narrow = (difference_interval(values, definition, level) for level in (0.95, 0.9))
    if isinstance(wide, str) or isinstance(narrow, str):
        return MarginVerdict(reason=wide if isinstance(wide, str) else str(narrow))
    low, high = 100 * narrow.low, 100 * narrow.high
    not_worse = {
        "higher": 100 * wide.low > -margin,
        "lower": 100 * wide.high < margin,
        "neither": None,
    }[definition.better]
    reason = NO_DIRECTION if not_worse is None else ""
    return MarginVerdict(not_worse, -margin < low and high < margin, low, high, reason)


def difference_interval(values: PairedValues, definition: MetricDefinition, level: float) -> Interval | str:
    """The confidence interval of the mean difference, before scaling."""
    low, high = difference_range(definition.range)
    bounds = (None if low is None else low / 100, None if high is None else high / 100)
    sums = np.bincount(values.clusters, values.after - values.before)[None].astype(np.float64)
    counts = np.bincount(values.clusters)[None].astype(np.float64)
    return difference_intervals(sums, counts, [bounds], graded=definition.graded, level=level)[0]


# -- The record of a comparison of runs

MetricSubset = tuple[str, str]
"""The name of a metric and of a subset."""


class ComparedSide(Struct, frozen=True):
    """One side of a comparison: the base runs, or the runs that are compared with them.

    `trust` holds the values that say how far similarity can be trusted, `spent` what the answers took.
    """

    runs: tuple[str, ...]
    task: str
    model: str
    probes: int
    undecided: int
    failed: int
    not_sent: int
    lacking_samples: int
    lacking_probes: int
    judge_errors: int = 0
    trust: tuple[MetricValue, ...] = ()
    spent: Spent | None = None


class Comparison(Struct, frozen=True):
    """Two runs, or several pairs of runs, on the groups that both runs of a pair hold.

    Attributes:
        undecided_bounds: The lowest and the highest difference that undecided verdicts allow, in the unit of
            the difference; empty if none is undecided.
        undecided_ends: The values of groups, as in `groups`, at both ends of these bounds.
        image_sizes: The images that the two runs of a pair saw in other sizes: path -> both sizes.
    """

    runs: tuple[tuple[str, str], ...]
    sides: tuple[ComparedSide, ComparedSide]
    base: Sequence[MetricValue]
    other: Sequence[MetricValue]
    differences: Sequence[MetricValue]
    each: Sequence[Sequence[MetricValue]]
    groups: Mapping[str, Mapping[str, PairedValues]]
    undecided_bounds: Mapping[MetricSubset, tuple[float, float]]
    undecided_ends: Sequence[Mapping[str, Mapping[str, PairedValues]]]
    answers: ComparedAnswers
    different_samples: Sequence[str]
    unchecked_samples: int
    image_sizes: Mapping[str, tuple[ImageSize, ImageSize]]
    differing_options: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
    not_compared: Mapping[str, str]
    definitions: Mapping[str, MetricDefinition]

    @property
    def benchmark(self) -> str:
        return self.sides[0].task.partition(":")[0]

    @property
    def task(self) -> str:
        """The tasks of both sides, such as "iibench:none and iibench:cot"; one name if they are equal."""
        return " and ".join(dict.fromkeys(side.task for side in self.sides))
