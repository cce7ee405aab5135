"""Metrics and results: what a metric is, its values, and the result of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from sightline.types import Group, Labels

Unit = Literal["percent", "points", "number"]
"""Points are differences of percentages."""

Better = Literal["higher", "lower", "neither"]
"""Which direction of a metric is better."""

LabelKind = Literal["any", "shared", "varying"]

Range = tuple[float | None, float | None]
"""The smallest and the largest possible value of a metric; None if there is no bound."""

PERCENT = (0.0, 100.0)
"""The range of a metric that is a share."""

RELIABLE_CLUSTERS = 10
"""A confidence interval of fewer clusters is approximate."""

IntervalMethod = Literal["wilson", "wilson, approximate", "t", "t, approximate", "bootstrap"]
"""How a confidence interval was made (`metrics/statistics.py`). Results of earlier versions have
intervals of the bootstrap."""


def is_approximate(method: IntervalMethod | None) -> bool:
    """Whether an interval is of fewer than RELIABLE_CLUSTERS clusters.

    Args:
        method: The method of the interval; None without an interval.

    Returns:
        Whether its method says so.
    """
    return method is not None and method.endswith("approximate")


class Term(Struct, frozen=True):
    """The contribution of one group to a metric: its value is the sum of `sum` over the sum of `count`.

    `labels` are the labels under which the term also counts; None stands for those of the group. A term
    about one outcome with labels of its own (a style, a mask) has `outcome.labels`. A term that is not
    `overall` counts under its labels only.
    """

    sum: float
    count: float
    labels: Labels | None = None
    overall: bool = True


class MetricDefinition(Struct, frozen=True):
    """What a metric means: an entry of `metric_definitions` in metrics.json.

    Attributes:
        meaning: One line in plain words.
        better: Which direction is better; `neither` for a description of the responses.
        range: The smallest and the largest possible value, in `unit`.
        unit: The unit of the values.
        source: The section or table of the paper that defines it.
        graded: Whether a unit may have any value of the range (a similarity); otherwise it is right or wrong.
    """

    meaning: str
    better: Better
    range: Range
    unit: Unit = "percent"
    source: str = ""
    graded: bool = False


class Metric(Struct, frozen=True, kw_only=True):
    """A metric over groups. Subsets, n, confidence intervals and paired differences follow from `terms`.

    Attributes:
        name: The name in metrics.json.
        terms: What one group adds to the metric.
        meaning: What the metric measures: one line in plain words.
        better: Which direction is better; `neither` for a description of the responses.
        range: The smallest and the largest possible value, in `unit`.
        source: The section or table of the paper that defines it.
        unit: The unit of the values.
        needs: Another setting whose answers the metric reads; without them it is null with that reason.
        how_to_run: The arguments of `sightline run` for the setting `needs`, if it is an option.
        judged: The question whose verdicts the metric uses; None if it reads the answers themselves.
        absent: The reason that is given if no group yields a term.
        counts_failures: Whether the metric counts probes without an answer, so that it has a value where
            nothing was answered.
        labels: The labels under which the metric has values. `varying`: those that vary within a group, and
            no value over all; `shared`: the others.
        per_group: Whether a group counts as one unit: it is undecided if undecided outcomes could change it.
        graded: Whether a unit may have any value of the range (a similarity); otherwise it is right or wrong.
    """

    name: str
    terms: Callable[[Group], Iterable[Term]]
    meaning: str
    better: Better
    range: Range
    source: str
    unit: Unit = "percent"
    needs: str | None = None
    how_to_run: str = ""
    judged: str | None = "correct"
    absent: str = "no probe has a value for it"
    counts_failures: bool = False
    labels: LabelKind = "any"
    per_group: bool = False
    graded: bool = False

    @property
    def definition(self) -> MetricDefinition:
        """The part of the metric that results and reports show."""
        return MetricDefinition(self.meaning, self.better, self.range, self.unit, self.source, self.graded)


class MetricValue(Struct, frozen=True):
    """One value of a metric with its context: one entry of metrics.json.

    Attributes:
        metric: The name of the metric.
        subset: 'all', 'LABEL=VALUE' or another part of the answers.
        value: The value in `unit`; None if it is undefined, with n 0 and a `reason`.
        n: The number that the metric averages over.
        clusters: The number of independent images.
        low: The lower bound of the 95 % confidence interval; None without an interval.
        high: Its upper bound.
        interval: The method of the interval.
        unit: The unit; shares are percentages 0-100.
        reason: Why there is no value, or no interval.
        published: The figures of papers for this metric and subset.
        value_decided: The value without undecided verdicts.
        value_if_right: The value if all undecided verdicts were right.
        judge: Who gave the verdicts.
    """

    metric: str
    subset: str
    value: float | None
    n: float
    clusters: int
    low: float | None = None
    high: float | None = None
    interval: IntervalMethod | None = None
    unit: Unit = "percent"
    reason: str | None = None
    published: list[PublishedValue] | None = None
    value_decided: float | None = None
    value_if_right: float | None = None
    judge: str | None = None

    @property
    def changed_if_right(self) -> float | None:
        """The value if all undecided verdicts were right; None if that changes nothing."""
        return None if self.value_if_right == self.value else self.value_if_right


class PublishedValue(Struct, frozen=True):
    """A figure that a paper prints for the same metric and subset.

    `comparable` is False if it measures something else; `note` says what. The note of a comparable figure
    says what else to know, such as who judged it.
    """

    row: str
    value: float
    table: str
    comparable: bool = True
    note: str | None = None

    @property
    def mark(self) -> str:
        """What stands behind the figure: '*' if it is not comparable, '†' if it has a note, otherwise ''."""
        if not self.comparable:
            return "*"
        return "†" if self.note else ""


class CorrectedValue(Struct, frozen=True, kw_only=True):
    """The value of a metric by a judge, corrected by humans who labelled a sample of the clusters.

    Attributes:
        metric: The name of the metric.
        judge: The judge that read all answers.
        humans: The names of the human judges.
        labelled: The number of clusters that humans labelled wholly.
        partly: The number of further clusters with some label, which are left out.
        judged: The judge's value of all clusters.
        human: The humans' value of the labelled clusters.
        sampled: The judge's value of the labelled clusters; None in files of earlier versions.
        corrected: The corrected value.
        bias: The judge's value minus the humans', of the labelled clusters.
        weight: How much the judge counts in the corrected value, 0-1; None without one.
        narrowed: By how much the corrected interval is narrower than the humans', in percent; negative if it
            is wider.
        needed: The number of further clusters to label for an interval half as wide; None if all clusters
            would not be enough.
    """

    metric: str
    judge: str
    humans: str
    labelled: int
    partly: int
    judged: MetricValue
    human: MetricValue
    corrected: MetricValue
    bias: MetricValue
    sampled: MetricValue | None = None
    weight: float | None = None
    narrowed: float | None = None
    needed: int | None = None


class Result(Struct, frozen=True, kw_only=True):
    """The result of an evaluation: all of metrics.json, in the order of the file.

    The fields are more than 15 because metrics.json is flat by contract. `metrics` are in the order of the
    benchmark. `errors` are failed calls, `not_sent` the probes that were not sent; neither has an answer.
    `ids_digest` is the digest of the ids of the samples. `corrected` has the metrics of each judge that read
    all answers, if humans labelled a part of them.
    """

    benchmark: str
    setting: str
    model: str
    model_identity: str
    judge: str
    options: Mapping[str, Any]
    samples: int
    probes: int
    errors: int
    misses: int
    undecided: int
    truncated: int
    versions: Mapping[str, Any]
    data_digest: str
    metrics: list[MetricValue]
    empty: int = 0
    refused: int = 0
    unscored: int = 0
    unparsed: int = 0
    judge_errors: int = 0
    not_sent: int = 0
    mixed_versions: bool = False
    notes: list[str] = field(default_factory=list)
    metric_definitions: Mapping[str, MetricDefinition] = field(default_factory=dict)
    ids_digest: str = ""
    corrected: list[CorrectedValue] = field(default_factory=list)
    schema: int = 1

    @property
    def unanswered(self) -> int:
        """The number of probes without an answer: failed or not sent."""
        return self.errors + self.not_sent


def difference_range(bounds: Range) -> Range:
    """The range of the difference of two values.

    Args:
        bounds: The range of each value.

    Returns:
        The smallest and the largest difference; None without a bound.

    >>> difference_range((0.0, 100.0))
    (-100.0, 100.0)
    """
    low, high = bounds
    return (None, None) if low is None or high is None else (low - high, high - low)
