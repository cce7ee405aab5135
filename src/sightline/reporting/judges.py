"""The judge report as tables: agreement with humans, differences of judges, agreement of humans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import NAMES
from sightline.benchmarks.released import published_errors, published_judges, published_responders
from sightline.errors import some_of
from sightline.metrics.association import JudgeDifference
from sightline.reporting.notes import interval_notes, naming_notes, null_notes, short_names, value_notes
from sightline.reporting.table import (
    Cell,
    Column,
    Field,
    PValue,
    ReportTable,
    Value,
    build_table,
    clusters_cell,
    heading,
    n_cell,
    size_fields,
    value_cell,
)
from sightline.types import MetricValue, split_subset

READ = (
    "ROC-AUC: the share of pairs of a right and a wrong answer in which the right one ranks higher; a tie"
    " counts half, an undecided verdict ranks between wrong and right",
    "agreement, kappa and alpha cover the answers that the judge decided",
)
NO_VERDICTS = "text metrics give numbers and no verdicts: they have no agreement, kappa or alpha"

HUMANS = "humans"
"""The column of the human majority beside those of judges."""

SCORES = (*NAMES, "s_gt")
"""The scores of answers that measure the similarity to a reference."""

COLUMNS = (
    "humans and judges: the share of the answers that they accept, in percent, an undecided one as not"
    " accepted; text metrics: the mean. All over the answers that humans decided"
)
SEEN = (
    "95 % CI of the share of the answers in which an annotator names an error; an answer has an error if more"
    " than half of the annotators who name any error in it name this one"
)
ONE_ERROR = "one error an answer: the shares of a responder add up to 100 %"
SEVERAL_ERRORS = "an answer may have several errors: the shares of a responder may add up to more than 100 %"
POWER = (
    "items needed: the number of clusters that detect a difference of this size with a power of 80 %"
    " (two-sided, 5 % level); detectable: the difference that these clusters detect with that power. Both"
    " assume that the standard error falls with the square root of the number of clusters"
)

DISTINGUISHABLE: Mapping[bool | None, str] = {True: "yes", False: "no", None: "unknown"}
"""`JudgeDifference.distinguishable` in words."""

CORRECTED = (
    "distinguishable: p is at most 0.05 after Holm's correction for {} of this report. All pairs"
    " count, because the best judge is chosen on the same answers"
)


def judge_tables(report: JudgeReport) -> list[ReportTable]:
    report = with_short_names(report)
    parts = dict.fromkeys(split_subset(row.subset)[0] for row in report.rows if row.subset != "all")
    return [
        _whole(report),
        *([_against_best(report)] if report.contrasts else []),
        *([_repeats(report.repeats)] if report.repeats else []),
        *(_parts(report, label) for label in parts),
        *(_responders(report, label) for label in dict.fromkeys(map(_label, report.responders))),
        *([_errors(report)] if report.errors else []),
        *([_humans(report.humans)] if report.humans.raters > 1 else []),
        *rating_tables(report.humans.quality),
    ]


def with_short_names(report: JudgeReport) -> JudgeReport:
    short = short_names(row.judge.partition(" (")[0] for row in report.rows)

    def called(judge: str) -> str:
        name, bracket, scorer = judge.partition(" (")
        return f"{short[name]}{bracket}{scorer}"

    return replace(
        report,
        rows=[replace(row, judge=called(row.judge)) for row in report.rows],
        responders=[
            replace(
                one,
                values={
                    name if name == HUMANS else called(name): value for name, value in one.values.items()
                },
            )
            for one in report.responders
        ],
        best=report.best and called(report.best),
        contrasts=[(called(judge), found) for judge, found in report.contrasts],
        repeats=[replace(value, judge=called(value.judge or "")) for value in report.repeats],
        notes=[*naming_notes((end, whole) for whole, end in short.items()), *report.notes],
    )


def _whole(report: JudgeReport) -> ReportTable:
    rows = [row for row in report.rows if row.subset == "all"]
    fields: list[Field[JudgeResult]] = [
        (Column("text", "judge", "judge"), lambda row: row.judge),
        *_measures(),
        (Column("value", "kappa\n95 %", "kappa"), lambda row: value_cell(row.kappa)),
        (Column("value", "alpha\n95 %", "alpha"), lambda row: value_cell(row.alpha)),
        *_counts(),
    ]
    title = "Judges and metrics compared with the human majority"
    return build_table(title, fields, rows, _notes(report, rows), _legend(report, rows))


def _against_best(report: JudgeReport) -> ReportTable:
    """Every other judge minus the best one, and how many items it takes to distinguish them."""
    fields: list[Field[tuple[str, JudgeDifference]]] = [
        (Column("text", "judge", "judge"), lambda line: line[0]),
        (Column("value", "difference\n95 %", "difference"), lambda line: value_cell(line[1].difference)),
        (
            Column("text", "distinguishable", "distinguishable"),
            lambda line: DISTINGUISHABLE[line[1].distinguishable],
        ),
        (Column("p_value", "p\nHolm", "holm"), lambda line: PValue(line[1].holm)),
        (
            Column("value", "detectable", "detectable"),
            lambda line: Value(line[1].detectable, unit=line[1].difference.unit),
        ),
        (Column("count", "items needed", "needed"), lambda line: line[1].needed),
        *size_fields(lambda line: line[1].difference, "answers"),
    ]
    answers = {row.judge: row.answers for row in report.rows if row.subset == "all"}
    most = max(answers.values())
    fewer = [f"{judge} ({answers[judge]:,})" for judge, _ in report.contrasts if answers[judge] < most]
    among = f" of those that read {most:,} answers, which {', '.join(fewer)} did not" if fewer else ""
    equal, unknown = (
        ", ".join(judge for judge, one in report.contrasts if one.distinguishable is state)
        for state in (False, None)
    )
    also = [f"these data do not distinguish it from {equal}"] if equal else []
    also += [f"unknown for {unknown}: there is no test"] if unknown else []
    best = "; ".join([f"the highest ROC-AUC{among}: {report.best}", *also])
    pairs = "the one pair of judges" if report.tested == 1 else f"the {report.tested:,} pairs of judges"
    notes = [
        best if also else f"{best}, distinguishable from all others",
        *null_notes(one.difference for _, one in report.contrasts),
    ]
    legend = [CORRECTED.format(pairs), POWER]
    return build_table(f"ROC-AUC minus that of {report.best}", fields, report.contrasts, notes, legend)


def _repeats(repeats: Sequence[MetricValue]) -> ReportTable:
    fields: list[Field[MetricValue]] = [
        (Column("text", "judge", "judge"), lambda one: one.judge or ""),
        (Column("text", "statistic", "statistic"), lambda one: one.metric),
        (Column("value", "value\n95 %", ""), value_cell),
        *size_fields(lambda one: one, "answers"),
    ]
    return build_table("Agreement of each judge with its own repeats", fields, repeats, value_notes(repeats))


def _parts(report: JudgeReport, label: str) -> ReportTable:
    held = [row for row in report.rows if split_subset(row.subset)[0] == label]
    rows = [row for judge in dict.fromkeys(one.judge for one in held) for row in held if row.judge == judge]
    fields: list[Field[JudgeResult]] = [
        (Column("text", "judge", "judge"), lambda row: row.judge),
        (Column("text", heading(label), label), lambda row: split_subset(row.subset)[1] or "unknown"),
        *_measures(),
        *_counts(),
    ]
    shown = [value for row in rows for value in (row.roc_auc, row.spearman)]
    return build_table(f"Compared with the human majority, by {label}", fields, rows, value_notes(shown))


def _responders(report: JudgeReport, label: str) -> ReportTable:
    """Responders as rows, then the paper's; humans, judges and metrics as columns (ConTextual, Table 3)."""
    rows = [one for one in report.responders if _label(one) == label]
    short = short_names(one.responder for one in rows)
    fewer = [
        f"{short[one.responder]} {name} ({value.n:,})"
        for one in rows
        for name, value in one.values.items()
        if value.n < one.values[HUMANS].n
    ]
    printed = [] if label else [one for name in report.benchmarks if (one := published_responders(name))]
    for table in printed:
        for name, cells in table.rows.items():
            figures = {
                column: MetricValue(column, "all", value, 0, 0)
                for column, value in zip(table.columns, cells, strict=True)
            }
            rows.append(ResponderValues(f"{name}, {table.table}", "all", figures))
    names = dict.fromkeys(name for one in rows for name in one.values)
    order = [*(column for table in printed for column in table.columns), *SCORES]
    fields: list[Field[ResponderValues]] = [
        (
            Column("text", "responder", "responder"),
            lambda one: short.get(one.responder, one.responder) or "unknown",
        ),
        *(
            [(Column("text", heading(label), label), lambda one: split_subset(one.subset)[1])]
            if label
            else []
        ),
        *(
            (Column("value", name, name), lambda one, name=name: value_cell(one.values.get(name)))
            for name in sorted(names, key=lambda name: order.index(name) if name in SCORES else -1)
        ),
        (Column("count", "answers", "n"), lambda one: n_cell(one.values[HUMANS]) or None),
        (Column("count", "clusters", "clusters"), lambda one: clusters_cell(one.values[HUMANS]) or None),
    ]
    title = f"Accepted answers and text metrics, by responder{f' and {label}' if label else ''}"
    notes = [
        *([f"of fewer answers: {some_of(fewer, 4)}"] if fewer else []),
        *(f"{table.table}: {table.note}" for table in printed),
    ]
    values = [value for one in rows for value in one.values.values()]
    return build_table(title, fields, rows, notes, [COLUMNS, *interval_notes(values)])


def _label(one: ResponderValues) -> str:
    return split_subset(one.subset)[0]


def _errors(report: JudgeReport) -> ReportTable:
    """Errors as rows, the most frequent one first, and responders as columns (II-Bench, Figure 4)."""
    columns: dict[Column, dict[str, Cell]] = {}
    short = short_names(one.subset.partition("=")[2] or "unknown" for one in report.errors)
    for one in report.errors:
        name = one.subset.partition("=")[2] or "unknown"
        column = Column("value", heading(short[name], f"n = {one.n:,.0f}"), name)
        columns.setdefault(column, {})[one.metric] = value_cell(one)
    for printed in filter(None, map(published_errors, report.benchmarks)):
        column = Column("value", heading(printed.row, printed.table), f"{printed.row} ({printed.table})")
        columns[column] = {error: Value(share) for error, share in printed.shares.items()}
    errors = dict.fromkeys(error for cells in columns.values() for error in cells)
    fields: list[Field[str]] = [
        (Column("text", "error", "error"), str),
        *((column, cells.get) for column, cells in columns.items()),
    ]
    rule = SEVERAL_ERRORS if report.several_errors else ONE_ERROR
    return build_table("Errors that humans name, by responder", fields, errors, [rule], [SEEN])


def _humans(humans: AnnotatorAgreement) -> ReportTable:
    rows = [humans.alpha, *humans.pairs]
    unknown = [f"accuracy of each annotator: {humans.quality}"] if isinstance(humans.quality, str) else []
    fields: list[Field[MetricValue]] = [
        (Column("text", "human", "human"), lambda one: one.subset.partition("=")[2] or "all"),
        (Column("text", "statistic", "statistic"), lambda one: one.metric),
        (Column("value", "value\n95 %", ""), value_cell),
        *size_fields(lambda one: one, "answers"),
    ]
    return build_table("Agreement among the humans", fields, rows, [*value_notes(rows), *unknown])


def _measures() -> list[Field[JudgeResult]]:
    return [
        (Column("value", "ROC-AUC\n95 %", "roc_auc"), lambda row: value_cell(row.roc_auc)),
        (Column("value", "Spearman\n95 %", "spearman"), lambda row: value_cell(row.spearman)),
        (Column("value", "agreement\n95 %", "agreement"), lambda row: value_cell(row.agreement)),
    ]


def _counts() -> list[Field[JudgeResult]]:
    return [
        (Column("count", "decided", "decided"), lambda row: row.decided),
        (Column("count", "answers", "n"), lambda row: row.answers),
        (Column("count", "clusters", "clusters"), lambda row: clusters_cell(row.roc_auc)),
    ]


def _notes(report: JudgeReport, rows: Sequence[JudgeResult]) -> list[str]:
    """Who judged, whose numbers the metrics are, which values are null, what the papers print."""
    humans = report.humans
    tied = f"; {humans.tied:,} without a majority are left out" if humans.tied else ""
    return [
        f"human annotators: {humans.raters:,}, who decided {humans.answers:,} answers{tied}",
        *report.notes,
        *value_notes(_statistics(rows)),
    ]


def _legend(report: JudgeReport, rows: Sequence[JudgeResult]) -> list[str]:
    return [
        *READ,
        *([NO_VERDICTS] if any(row.decided is None for row in rows) else []),
        *(f"{name}: {identity}" for name, identity in report.versions.items()),
        *interval_notes(_statistics(rows)),
        *_printed(report.benchmarks),
    ]


def _statistics(rows: Sequence[JudgeResult]) -> list[MetricValue]:
    """The values of a table, without those of a metric that gives no verdicts."""
    judged = [
        value for row in rows for value in (row.agreement, row.kappa, row.alpha) if row.decided is not None
    ]
    return [*(value for row in rows for value in (row.roc_auc, row.spearman)), *judged]


def _printed(benchmarks: Sequence[str]) -> list[str]:
    """The judges that the papers print, which read other answers."""
    return [
        f"{judges.table}, {judges.note}, not the judges of this report: "
        + ", ".join(f"{name} {' and '.join(map(str, row))}" for name, row in judges.rows.items())
        + f" ({' and '.join(judges.columns)})"
        for benchmark in benchmarks
        if (judges := published_judges(benchmark)) is not None
    ]


# -- The tables of rating quality: the estimated accuracy of each rater, and the answers to adjudicate
#    first

MOST_ANSWERS = 10
"""The answers to adjudicate that are listed."""

LEAST_LOSS = 5.0
"""Answers whose label is wrong with a smaller probability (in percent) are not listed."""

MODEL = (
    "estimated by the model of Dawid and Skene (1979): raters err independently of each other, each with"
    " rates of their own, with a prior of a rating in each cell and a second one on the diagonal. The"
    " intervals take the estimated labels as known"
)
RATES = "accepts right, refuses wrong: how often the rater is right about right and about wrong answers"
LOSS = "loss: the probability that the label that counts is wrong (the majority, for a tie the likely label)"


def rating_tables(quality: RatingQuality | str) -> list[ReportTable]:
    """The accuracy of raters, and what to adjudicate first; only the reason where `quality` is one."""
    if isinstance(quality, str):
        return []
    doubtful = [one for one in quality.answers if one.loss >= LEAST_LOSS]
    return [_raters(quality), *([_adjudicate(quality, doubtful)] if doubtful else [])]


def _raters(quality: RatingQuality) -> ReportTable:
    fields: list[Field[RaterAccuracy]] = [
        (Column("text", "human", "human"), lambda one: one.rater),
        (Column("value", "accuracy\n95 %", "accuracy"), lambda one: value_cell(one.accuracy)),
        (Column("value", "accepts\nright", "accepts right"), lambda one: Value(one.right)),
        (Column("value", "refuses\nwrong", "refuses wrong"), lambda one: Value(one.wrong)),
        *size_fields(lambda one: one.accuracy, "answers"),
    ]
    values = [one.accuracy for one in quality.raters]
    notes, legend = [*quality.notes, *null_notes(values)], [MODEL, RATES, *interval_notes(values)]
    return build_table("Estimated accuracy of the humans", fields, quality.raters, notes, legend)


def _adjudicate(quality: RatingQuality, doubtful: list[RatedAnswer]) -> ReportTable:
    fields: list[Field[RatedAnswer]] = [
        (Column("text", "sample", "sample"), lambda one: one.sample),
        (Column("text", "variant", "variant"), lambda one: one.variant),
        (Column("text", "responder", "responder"), lambda one: ", ".join(one.responders)),
        (Column("text", "accepted by", "accepted by"), lambda one: f"{one.right} of {one.raters}"),
        (Column("value", "right\n%", "probability"), lambda one: Value(one.probability)),
        (Column("value", "loss\n%", "loss"), lambda one: Value(one.loss)),
    ]
    wrong = sum(one.loss for one in quality.answers) / 100
    notes = [
        f"of {len(quality.answers):,} labels, {wrong:.1f} are expected to be wrong; {len(doubtful):,} have a"
        f" loss of at least {LEAST_LOSS:g} %",
    ]
    return build_table("Answers to adjudicate first", fields, doubtful[:MOST_ANSWERS], notes, [LOSS])


# -- The records of a judge report


class JudgeResult(Struct, frozen=True):
    """A judge or a text metric against the majority of the human annotators, over a subset.

    A text metric gives numbers and no verdicts: its agreement, kappa and alpha have no value.

    Attributes:
        decided: The number of answers that the judge decided; None for a text metric.
    """

    judge: str
    subset: str
    roc_auc: MetricValue
    spearman: MetricValue
    agreement: MetricValue
    kappa: MetricValue
    alpha: MetricValue
    answers: int
    decided: int | None
    curve: tuple[tuple[float, float], ...] = ()


class ResponderValues(Struct, frozen=True):
    """What humans, judges and text metrics say of a responder's answers in a subset, in percent.

    Attributes:
        values: HUMANS, and each judge and text metric: the share of accepted answers, or the mean score.
    """

    responder: str
    subset: str
    values: Mapping[str, MetricValue]


class RaterAccuracy(Struct, frozen=True):
    """How often, in percent, a rater accepts right answers and refuses wrong ones (Dawid and Skene)."""

    rater: str
    accuracy: MetricValue
    right: float
    wrong: float


class RatedAnswer(Struct, frozen=True):
    """An answer with an uncertain label; in percent: that it is right, that the counting label is wrong."""

    sample: str
    variant: str
    responders: tuple[str, ...]
    right: int
    raters: int
    probability: float
    loss: float


class RatingQuality(Struct, frozen=True):
    """The quality of the ratings, by the model of Dawid and Skene.

    Attributes:
        answers: By descending loss; empty where they are too few for an order.
    """

    raters: list[RaterAccuracy]
    answers: list[RatedAnswer]
    notes: list[str]


class AnnotatorAgreement(Struct, frozen=True):
    """The agreement of the human annotators."""

    raters: int
    answers: int
    tied: int
    alpha: MetricValue
    pairs: list[MetricValue]
    quality: RatingQuality | str


class JudgeReport(Struct, frozen=True):
    """A judge report."""

    rows: list[JudgeResult]
    humans: AnnotatorAgreement
    repeats: list[MetricValue]
    best: str | None
    contrasts: list[tuple[str, JudgeDifference]]
    tested: int
    responders: list[ResponderValues]
    errors: list[MetricValue]
    several_errors: bool
    versions: Mapping[str, str]
    benchmarks: tuple[str, ...]
    notes: list[str]
