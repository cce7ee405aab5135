"""The records of the index: runs, rows of groups, facets, pages, and comparisons of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from sightline.metric_types import MetricValue, Result
from sightline.results.flips import Change, ChangeCounts
from sightline.results.run_list import RunLine
from sightline.types import Outcome, Verdict, VerdictName

RightShare = Literal["all", "some", "none", "undecided", "unscored"]
"""Whether all, some or none of the answers of a group are right; `undecided` if that depends on an undecided
verdict or on a missing answer; `unscored` if an answer is not scored."""

Consistency = Literal["consistent", "inconsistent", "undecided"]
"""Inconsistent: answers differ where the references are equal, or are equal where the references differ.
Consistent: every two answers were compared, and fit together. Undecided: no two answers are known not to fit,
but the comparison of some is undecided, or an answer is missing or empty."""

Comparability = Literal["incomparable"]
"""The group has a single probe."""

INCOMPARABLE: Comparability = "incomparable"

JudgeView = Literal["differ", "human"]
"""`differ`: two judges decide differently about an answer. `human`: a human judged an answer."""

ResponseLength = Literal["empty", "1-5", "6-50", "51-200", "over-200"]
"""The words of the longest response of a group."""

BuildStep = Literal["absent", "building", "stale", "ready", "failed"]
"""`stale`: there is an index, but the answers of the run or the code that judges them changed since."""


class IndexState(Struct, frozen=True):
    """Whether the index of a run can be read."""

    step: BuildStep
    done: int = 0
    total: int = 0
    error: str = ""


class RunSummary(Struct, frozen=True):
    """A run of the store, and its result if the run is indexed.

    Attributes:
        result: The content of metrics.json; None without an index.
    """

    line: RunLine
    state: IndexState
    result: Result | None = None
    groups: int = 0

    @property
    def run(self) -> int:
        """The number of the run."""
        return self.line.number


class IndexedImage(Struct, frozen=True):
    """An image of an answer.

    Attributes:
        digest: The SHA-256 of the file when it was sent or indexed, in hexadecimal; '' if it is not recorded.
    """

    path: str
    digest: str = ""
    is_sent: bool = True


class Mark(Struct, frozen=True):
    """The verdict that counts for one probe of a group; marks are in the order of the variants."""

    variant: str
    draw: int
    verdict: VerdictName

    @property
    def label(self) -> str:
        """The text of the mark."""
        return f"{self.variant}: {self.verdict}"


class Misfit(Struct, frozen=True):
    """Two answers of a group that do not fit together."""

    first: int
    second: int
    is_same: bool


class GroupFacts(Struct, frozen=True):
    """What lists say of a group.

    Attributes:
        draw: The repeat, from 0.
        right: Whether all, some or none of its answers are right.
        consistency: Whether its answers fit together; None for a group of one probe.
        similarity: The smallest similarity of two of its answers, 0 to 1; None if it was not measured.
    """

    sample: str
    draw: int
    pooled: str
    question: str
    marks: tuple[Mark, ...]
    right: RightShare
    consistency: Consistency | None
    flags: tuple[str, ...]
    similarity: float | None
    labels: tuple[tuple[str, str], ...]


class GroupRow(GroupFacts, frozen=True):
    """A group in a list.

    Attributes:
        rank: Its rank from 0; the most informative group comes first.
        image: The first image; None without images.
    """

    number: int
    rank: int
    image: IndexedImage | None = None
    misfits: tuple[Misfit, ...] = ()


class GroupPage(Struct, frozen=True):
    """A page of a list of groups.

    Attributes:
        previous: The rank that the page before continues after; None if that is the first page, and on it.
        next: The rank to continue after; None on the last page.
    """

    rows: tuple[GroupRow, ...]
    previous: int | None
    next: int | None
    total: int


class SimilarityMatrix(Struct, frozen=True):
    """The similarity of each pair of answers of a group.

    Attributes:
        values: The similarities, 0 to 1; None where a pair was not measured.
    """

    variants: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    threshold: float


class GroupDetail(Struct, frozen=True):
    """Everything about a group.

    Attributes:
        similarity: The similarity of its answers; None if it was not measured.
    """

    row: GroupRow
    outcomes: tuple[Outcome, ...]
    verdicts: tuple[Verdict, ...]
    images: tuple[tuple[IndexedImage, ...], ...]
    similarity: SimilarityMatrix | None = None


class Neighbours(Struct, frozen=True):
    """The numbers of the groups before and after a group in a list; None at its ends."""

    previous: int | None
    next: int | None


class FacetValue(Struct, frozen=True):
    """A value that a filter can select, and the number of groups that it selects among the filtered ones."""

    value: str
    count: int


class Facet(Struct, frozen=True):
    """A field of a filter with its values."""

    name: str
    values: tuple[FacetValue, ...]
    label: str = ""


class Facets(Struct, frozen=True):
    """The facets of a run under a filter. `total` is the number of its groups that the filter selects."""

    facets: tuple[Facet, ...]
    total: int


ChangeList = Literal[
    "gained",
    "lost",
    "both_right",
    "both_wrong",
    "flipped",
    "undecided",
    "unanswered",
    "identical",
    "different",
]
"""The groups behind a number of a comparison: the lists of `results/flips.py`, and `flipped`: an answer of
the group became right or wrong."""


class ChangedGroup(Struct, frozen=True):
    """A group in two runs, and what became of it from the base run to the other one."""

    change: Change
    base: GroupDetail
    other: GroupDetail


class ChangePage(Struct, frozen=True):
    """A page of changed groups.

    Attributes:
        next: The rank to continue after; None on the last page.
    """

    rows: tuple[ChangedGroup, ...]
    next: int | None
    total: int


class ComparedMetric(Struct, frozen=True):
    """A metric of two runs over the groups that both hold.

    Attributes:
        p: The p-value of the difference; None without a test.
        if_decided: The lowest and the highest difference that undecided verdicts allow; None if no verdict
            that the metric uses is undecided.
    """

    base: MetricValue
    other: MetricValue
    difference: MetricValue
    p: float | None = None
    if_decided: tuple[float, float] | None = None


class RunComparison(Struct, frozen=True):
    """A comparison of two runs."""

    base: int
    other: int
    counts: Sequence[ChangeCounts]
    lists: Mapping[ChangeList, int]
    metrics: Sequence[ComparedMetric]
    by_label: Sequence[tuple[str, ChangeCounts]]
    groups: int
    notes: Sequence[str] = ()
