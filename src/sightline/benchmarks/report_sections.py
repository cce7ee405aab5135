"""What the report of a benchmark shows besides its leading metrics; `reporting/html` draws it."""

from __future__ import annotations

from msgspec import Struct


class ByLabel(Struct, frozen=True):
    """A metric under each value of a label; `radar` draws it as a radar chart too."""

    metric: str
    label: str
    radar: bool = False


class PairCounts(Struct, frozen=True):
    """How many pairs of answers are both right, one right, none or undecided; how many are the same twice.

    Attributes:
        both: The metric of pairs with both answers right.
        differ: The metric of pairs whose answers differ.
        label: The label by which the counts are broken down.
    """

    both: str
    differ: str
    label: str


class Shares(Struct, frozen=True):
    """Metrics that add up to 100 % under each value of a label.

    Attributes:
        title: The heading.
        parts: The metrics, and what each counts.
        label: The label.
    """

    title: str
    parts: tuple[tuple[str, str], ...]
    label: str


class Against(Struct, frozen=True):
    """One metric against another: a point for each run, and for each row of the paper."""

    x: str
    y: str


class Together(Struct, frozen=True):
    """Some metrics over all samples, with the reason where one has no value."""

    title: str
    metrics: tuple[str, ...]


class Differences(Struct, frozen=True):
    """Metrics beside the same metrics of other answers, of which the run measures the difference.

    Attributes:
        title: The heading.
        here: What the answers of the run are called.
        there: What the other answers are called.
        metrics: Each metric, and the one that is its difference, here minus there.
    """

    title: str
    here: str
    there: str
    metrics: tuple[tuple[str, str], ...]


class ByJudge(Struct, frozen=True):
    """A metric as each judge alone decides it, and how the judges agree."""

    metric: str


ReportSection = ByLabel | PairCounts | Shares | Against | Together | Differences | ByJudge
