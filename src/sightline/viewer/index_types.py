"""The records of the index: runs, groups, facets, comparisons, filters, and the orders of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct

from sightline.errors import UserError
from sightline.evaluation.runs import RunLine
from sightline.metrics.flips import Change, ChangeCounts
from sightline.metrics.significance import Significance
from sightline.types import Better, GroupKey, MetricValue, Outcome, Result, Verdict, VerdictName

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
    """A run of the store, and the content of its metrics.json; None without an index."""

    line: RunLine
    state: IndexState
    result: Result | None = None
    groups: int = 0

    @property
    def run(self) -> int:
        return self.line.number


class IndexedImage(Struct, frozen=True):
    """An image of an answer.

    `digest` is the SHA-256 of the file when it was sent or indexed, in hexadecimal; '' if not recorded.
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
        return f"{self.variant}: {self.verdict}"


class Misfit(Struct, frozen=True):
    """Two answers of a group that do not fit together."""

    first: int
    second: int
    is_same: bool


class GroupFacts(Struct, frozen=True):
    """What lists say of a group.

    Attributes:
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
    """A group in a list; numbers count from 1 in the order of the samples. `image` is the first image."""

    number: int
    image: IndexedImage | None = None
    misfits: tuple[Misfit, ...] = ()

    @property
    def key(self) -> GroupKey:
        return self.sample, self.draw, self.pooled


class GroupPage(Struct, frozen=True):
    """A page of a list of groups.

    Attributes:
        previous: The group that the page before continues after; None if that is the first page, and on it.
        next: The group to continue after; None on the last page.
    """

    rows: tuple[GroupRow, ...]
    previous: int | None
    next: int | None
    total: int


class SimilarityMatrix(Struct, frozen=True):
    """The similarity of each pair of answers of a group, 0 to 1; None where it was not measured."""

    variants: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    threshold: float


class GroupDetail(Struct, frozen=True):
    """Everything about a group; `similarity` is None if it was not measured."""

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
"""The groups behind a number of a comparison: the lists of `metrics/flips.py`, and `flipped`: an answer of
the group became right or wrong."""


class ChangedGroup(Struct, frozen=True):
    """A group in two runs, and what became of it from the base run to the other one."""

    change: Change
    base: GroupDetail
    other: GroupDetail


class ChangePage(Struct, frozen=True):
    """A page of changed groups; `next` is the group to continue after, None on the last page."""

    rows: tuple[ChangedGroup, ...]
    next: int | None
    total: int


class ComparedMetric(Struct, frozen=True):
    """A metric of two runs over the groups that both hold.

    Attributes:
        test: The test of the difference, corrected for the rows of the table that shows it; None without one.
        if_decided: The lowest and the highest difference that undecided verdicts allow; None if the metric
            uses no undecided verdict.
    """

    base: MetricValue
    other: MetricValue
    difference: MetricValue
    better: Better
    test: Significance | None = None
    if_decided: tuple[float, float] | None = None


class RunComparison(Struct, frozen=True):
    """A comparison of two runs; `leading` are the metrics that are shown first."""

    base: int
    other: int
    leading: Sequence[str]
    counts: Sequence[ChangeCounts]
    lists: Mapping[ChangeList, int]
    metrics: Sequence[ComparedMetric]
    by_label: Sequence[tuple[str, ChangeCounts]]
    groups: int
    notes: Sequence[str] = ()


Order = Literal["informative", "data", "length", "similarity"]
"""The most informative groups first; in the order of the samples; the longest response first; the least
similar answers first."""


# -- Which groups of a run a list shows: a filter, and its form in a URL

CHOICES: dict[str, tuple[str, ...]] = {
    "right": get_args(RightShare),
    "consistency": (*get_args(Consistency), *get_args(Comparability)),
    "verdict": get_args(VerdictName),
    "judges": get_args(JudgeView),
    "length": get_args(ResponseLength),
}
"""Field -> its values, in the order of lists."""

LABEL = "label."
"""The start of the name of a label in a URL."""


class GroupFilter(Struct, frozen=True):
    """The groups that fulfil every condition; None and '' are no condition."""

    right: RightShare | None = None
    consistency: Consistency | Comparability | None = None
    verdict: VerdictName | None = None
    judges: JudgeView | None = None
    length: ResponseLength | None = None
    labels: tuple[tuple[str, str], ...] = ()
    search: str = ""

    def to_query(self) -> list[tuple[str, str]]:
        fields = [(name, value) for name in CHOICES if (value := getattr(self, name)) is not None]
        labels = [(LABEL + name, value) for name, value in self.labels]
        return [*fields, *labels, *([("search", self.search)] if self.search else [])]


EVERY = GroupFilter()
"""All groups."""


def filter_of(parameters: Iterable[tuple[str, str]]) -> GroupFilter:
    """Read a filter from the parameters of a URL: the inverse of `GroupFilter.to_query`."""
    fields: dict[str, Any] = {}
    labels: list[tuple[str, str]] = []
    for name, value in parameters:
        if not value:
            continue
        if name.startswith(LABEL):
            labels.append((name.removeprefix(LABEL), value))
        elif name == "search":
            fields[name] = value
        elif name in CHOICES:
            if value not in CHOICES[name]:
                raise UserError(
                    "no such filter", field=name, found=value, expected=" or ".join(CHOICES[name])
                )
            fields[name] = value
    return GroupFilter(**fields, labels=tuple(dict.fromkeys(labels)))
