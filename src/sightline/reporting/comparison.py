"""Tables that compare runs: values, differences and significance tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from sightline.errors import UserError, some_of, unknown_name
from sightline.formats.jsonl import are_named
from sightline.metrics.flips import LISTS, AnswerChange, ChangeCounts, count_changes, group_changes
from sightline.metrics.significance import (
    ComparedSide,
    Comparison,
    MarginVerdict,
    MetricSubset,
    Significance,
)
from sightline.metrics.statistics import LEVEL
from sightline.reporting.notes import (
    definition_notes,
    gathered,
    interval_notes,
    label_of,
    null_notes,
    option_text,
    place,
    published_notes,
    shared_notes,
    short_names,
    spent_words,
)
from sightline.reporting.table import (
    Cell,
    Column,
    Field,
    PublishedCell,
    PValue,
    ReportTable,
    Value,
    build_table,
    clusters_cell,
    heading,
    n_cell,
    number_text,
    value_cell,
)
from sightline.reporting.tables import leading_metrics, spent_cell
from sightline.scoring.similarity import similarity_warning
from sightline.text import counted
from sightline.types import Better, MetricValue, PublishedValue, Result

NOTE = (
    "runs: means over the groups that have a value in both runs; each group counts once, so that groups of"
    " unequal size can give another value than `sightline report`"
)

CHANGE = (
    "difference: the second run minus the first, over the same groups; its 95 % CI follows from the variance"
    " between clusters of the differences within groups"
)

DECIDES = (
    "p: two-sided p-value of a cluster sign-flip permutation test, with Holm's correction for the {} of this"
    " table; a difference is significant up to 0.05"
)

CLUSTERS_ASIDE = (
    "Holm's p decides; the p of Benjamini and Hochberg controls the false discovery rate. The paired t test"
    " (ConTextual 3.3.1) and McNemar's exact test take groups as independent: if several groups share an"
    " image, their p-values are too small"
)

DETECTABLE = (
    "detectable: the difference that these groups detect with a power of 80 % (two-sided, 5 % level), from"
    " the spread of the differences between clusters; a smaller difference may be missed"
)

IF_DECIDED = (
    "if undecided were decided: the difference if all undecided verdicts of one run were right and those of"
    " the other wrong, and the reverse"
)

TOGETHER = (
    "{} together: a group counts once in each; the confidence interval covers the variation of the data, "
    "not of the seeds"
)


def rows_of(comparison: Comparison, metrics: Collection[str], by: str | None) -> list[MetricValue]:
    """The differences that a table shows; the values of the label `by` are rows too."""
    order = list(metrics)
    return sorted(
        (
            change
            for change in comparison.differences
            if change.metric in order and (change.subset == "all" or label_of(change)[0] == by)
        ),
        key=lambda change: order.index(change.metric),
    )


def check_rows(metrics: Sequence[str], rows: Sequence[MetricValue], comparison: Comparison) -> None:
    """Check that every requested metric has a row: some metrics have values under labels only."""
    shown = {row.metric for row in rows}
    for name in metrics:
        if name not in shown:
            changes = [change for change in comparison.differences if change.metric == name]
            labels = dict.fromkeys(f"--by {label_of(change)[0]}" for change in changes)
            raise UserError(
                f"{name} has no row over all samples: it has values under labels only",
                expected=" or ".join(labels),
            )


class ComparedRuns(NamedTuple):
    """A comparison, the differences that are shown, and their tests; `verdicts` None without a margin."""

    comparison: Comparison
    rows: Sequence[MetricValue]
    tests: Mapping[MetricSubset, Significance]
    verdicts: Mapping[MetricSubset, MarginVerdict] | None
    margin: float

    def tables(self, *, all_tests: bool = False, full: bool = False) -> list[ReportTable]:
        tables = [comparison_table([self], full=full)]
        if all_tests:
            tables.append(tests_table(self.comparison, self.rows, self.tests))
        if self.verdicts is not None:
            tables.append(margin_table(self.comparison, self.rows, self.verdicts, self.margin))
        return tables

    @property
    def lead(self) -> str:
        """What the first difference shows, in a sentence; '' without a test."""
        if not self.rows:
            return ""
        first, sides = self.rows[0], self.comparison.sides
        where = (first.metric, first.subset)
        names = (", ".join(sides[0].runs), ", ".join(sides[1].runs))
        better = self.comparison.definitions[first.metric].better
        return verdict(
            first, self.tests.get(where), better, names, self.comparison.undecided_bounds.get(where)
        )


class _Row(NamedTuple):
    """A difference of one of the comparisons of a table."""

    of: ComparedRuns
    change: MetricValue

    @property
    def test(self) -> Significance | None:
        return self.of.tests.get((self.change.metric, self.change.subset))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and highest difference that undecided verdicts allow."""
        return self.of.comparison.undecided_bounds.get((self.change.metric, self.change.subset))


def comparison_table(compared: Sequence[ComparedRuns], *, full: bool = False) -> ReportTable:
    """A table of differences with the values of both runs and the p-values.

    With several comparisons with one base, each place has a row for each of them.
    """
    comparisons = [one.comparison for one in compared]
    base, other = comparisons[0].sides
    rows = [_Row(one, change) for one in compared for change in one.rows]
    places = list(dict.fromkeys((row.change.metric, row.change.subset) for row in rows))
    rows.sort(key=lambda row: places.index((row.change.metric, row.change.subset)))
    changes = [row.change for row in rows]
    definitions = {name: of for one in comparisons for name, of in one.definitions.items()}

    def if_decided(row: _Row) -> Cell:
        return row.bounds and Value(row.change.value, *row.bounds, unit=row.change.unit)

    def of(comparison: Comparison) -> str:
        """Whose note it is, where several runs are compared with the base."""
        return f"{', '.join(comparison.sides[1].runs)}: " if len(compared) > 1 else ""

    is_whole = all(subset == "all" for _, subset in places)
    second = _head(other) if len(compared) == 1 else "value\n95 %"
    fields: list[Field[_Row]] = [
        (Column("text", "metric", "metric"), lambda row: row.change.metric),
        (Column("text", "subset", "subset", aside=is_whole), lambda row: row.change.subset),
        (Column("value", _head(base), "first"), lambda row: value_at(row.of.comparison.base, row.change)),
        (Column("value", second, "second"), lambda row: value_at(row.of.comparison.other, row.change)),
        (Column("value", "difference\n95 %", "difference"), lambda row: value_cell(row.change)),
        (Column("count", "groups", "groups"), lambda row: n_cell(row.change)),
        (Column("count", "clusters", "clusters", aside=True), lambda row: clusters_cell(row.change)),
        (Column("p_value", "p\nHolm", "holm"), lambda row: PValue(row.test.holm if row.test else None)),
    ]
    published, figures = _published(comparisons[0], changes)
    tests = sum(len(one.tests) for one in compared)
    notes = [
        *_differences_note(comparisons),
        *dict.fromkeys(f"{of(one)}{note}" for one in comparisons for note in _differing_options(one)),
        *dict.fromkeys(note for one in comparisons for note in pairing_notes(one)),
        *(f"{of(one.comparison)}{note}" for one in compared for note in disagreements(one.rows, one.tests)),
        *null_notes(changes),
        *published_notes(figures),
        *_spent_notes(comparisons),
    ]
    legend = [
        *definition_notes((metric for metric, _ in places), definitions),
        NOTE,
        CHANGE,
        *dict.fromkeys(note for one in comparisons for note in _not_compared(one.not_compared)),
        *interval_notes(changes),
        *([DECIDES.format("one row" if tests == 1 else f"{tests} rows")] if tests else []),
        *dict.fromkeys(note for one in compared for note in drawn_notes(one.rows, one.tests)),
    ]
    if any(one.each for one in comparisons):
        fields.append(
            (Column("text", "of each", "each"), lambda row: each_pair(row.of.comparison, row.change))
        )
        legend.append(TOGETHER.format(f"{max(len(one.runs) for one in comparisons)} pairs of runs"))
    if any(row.bounds and row.bounds[0] != row.bounds[1] for row in rows):
        fields.insert(5, (Column("value", "if undecided\nwere decided", "if_decided"), if_decided))
        legend.append(IF_DECIDED)
    if len(compared) > 1:
        fields.insert(2, (Column("text", "run", "run"), lambda row: _name(row.of.comparison.sides[1])))
        for name, head in (("cost", "cost"), ("p95", "p95\ns")):
            if any(getattr(one.sides[1].spent, name, None) is not None for one in comparisons):
                fields.append((Column("value", head, name), partial(_spent, name)))
    fields += [(column, _of_change(cell)) for column, cell in published]
    for side, key in enumerate(("first run", "second run") if full else ()):
        fields.append((Column("text", key, key), partial(_run_names, side)))
    titles = dict.fromkeys(one.task for one in comparisons)
    made = build_table(" and ".join(titles), fields, rows, notes, legend)
    return replace(made, lead=". ".join(filter(None, (one.lead for one in compared))))


def _spent_notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What the answers of two runs took; several have columns."""
    sides = comparisons[0].sides if len(comparisons) == 1 else comparisons[0].sides[:1]
    return [f"{', '.join(one.runs)}: {words}" for one in sides if (words := spent_words(one.spent))]


def _of_change(cell: Callable[[MetricValue], Cell]) -> Callable[[_Row], Cell]:
    return lambda row: cell(row.change)


def _spent(field: str, row: _Row) -> Cell:
    return spent_cell(row.of.comparison.sides[1].spent, field)


def _run_names(side: int, row: _Row) -> str:
    return ", ".join(row.of.comparison.sides[side].runs)


def _differences_note(comparisons: Sequence[Comparison]) -> list[str]:
    if len(comparisons) > 1:
        return [f"difference: the value minus that of {', '.join(comparisons[0].sides[0].runs)}"]
    base, other = comparisons[0].sides
    return [f"difference: {', '.join(other.runs)} minus {', '.join(base.runs)}"]


def _name(side: ComparedSide) -> str:
    """The runs of a side in a cell, with their model unless the user named them."""
    return " ".join(_head(side).split("\n"))


def verdict(
    row: MetricValue,
    test: Significance | None,
    better: Better,
    names: tuple[str, str],
    if_decided: tuple[float, float] | None,
) -> str:
    """What a difference shows, in a sentence: which side is ahead, or what these groups could have shown.

    '' where it was not tested.

    Args:
        names: What the reader calls the base and the other side.
        if_decided: The lowest and the highest difference that undecided verdicts allow.
    """
    if row.value is None or test is None or test.holm is None:
        return ""
    size = number_text(abs(row.value))
    unit = " points" if row.unit == "points" else ""
    groups = f"{row.n:,.0f} groups"
    if not test.significant:
        seen = test.detectable
        power = (
            f"; {groups} detect {number_text(seen)}{unit} with a power of 80 %" if seen is not None else ""
        )
        return f"No difference of {place(row)} is shown between {names[0]} and {names[1]}{power}"
    higher, lower = reversed(names) if row.value > 0 else names
    ahead, behind = (lower, higher) if better == "lower" else (higher, lower)
    word = "differs from" if better == "neither" else "is ahead of"
    said = f"{ahead} {word} {behind} by {size}{unit} of {place(row)} ({groups})"
    reversible = if_decided is not None and if_decided[0] <= 0 <= if_decided[1] != if_decided[0]
    return f"{said}; undecided verdicts could turn it" if reversible else said


_PLACE: list[Field[MetricValue]] = [
    (Column("text", "metric", "metric"), lambda change: change.metric),
    (Column("text", "subset", "subset"), lambda change: change.subset),
]
"""The columns of the place of a difference."""


def _head(side: ComparedSide) -> str:
    """The names of the runs; below them the model, unless the user named them."""
    names = [name.removeprefix("run ") for name in side.runs]
    numbered = all(name.isdecimal() for name in names)
    title = f"run{'s' if len(names) > 1 else ''} {', '.join(names)}" if numbered else ", ".join(names)
    return heading(title, *([] if are_named(side.runs) else [short_names([side.model])[side.model]]))


def _published(
    comparison: Comparison, rows: Sequence[MetricValue]
) -> tuple[list[Field[MetricValue]], list[tuple[str, PublishedValue]]]:
    """A column for each row and table of the paper, and its figures with their places.

    Those for the setting of the base run come first.
    """
    places = {(row.metric, row.subset): place(row) for row in rows}
    found: dict[tuple[str, str], dict[MetricSubset, PublishedValue]] = {}
    for metric in (*comparison.base, *comparison.other):
        where = (metric.metric, metric.subset)
        for figure in (metric.published or ()) if where in places else ():
            found.setdefault((figure.row, figure.table), {}).setdefault(where, figure)

    def field(row: str, table: str, figures: Mapping[MetricSubset, PublishedValue]) -> Field[MetricValue]:
        def cell(change: MetricValue) -> Cell:
            figure = figures.get((change.metric, change.subset))
            return None if figure is None else PublishedCell(figure, None)

        return Column("published", heading(row, table), f"{row} ({table})", differences=False), cell

    fields = [field(*named, figures) for named, figures in found.items()]
    return fields, [(places[at], one) for figures in found.values() for at, one in figures.items()]


def comparison_notes(comparison: Comparison) -> list[str]:
    """What limits a comparison: options that differ, what the runs do not share, what their answers lack."""
    return [
        *_differing_options(comparison),
        *pairing_notes(comparison),
        *_not_compared(comparison.not_compared),
    ]


def pairing_notes(comparison: Comparison) -> list[str]:
    """What the runs do not share, and what their answers lack."""
    notes = []
    for side in comparison.sides:
        name = ", ".join(side.runs)
        notes += lacking_notes(name, side.lacking_samples, side.lacking_probes)
        counts = {
            "undecided": side.undecided,
            "without an answer, because the request failed": side.failed,
        }
        found = [
            f"{number:,} ({100 * number / side.probes:.1f} %) {what}"
            for what, number in counts.items()
            if number
        ]
        if found:
            notes.append(f"{name}: of {side.probes:,} probes {'; '.join(found)}; they count as not right")
        if side.judge_errors:
            notes.append(f"{name}: judge errors: {side.judge_errors:,} judgements are missing or undecided")
        if side.not_sent:
            notes.append(f"{name}: {side.not_sent:,} probes were not sent; their groups are left out")
    warned = [(", ".join(one.runs), similarity_warning(one.trust)) for one in comparison.sides]
    notes += shared_notes([(name, [warning] if warning else []) for name, warning in warned])
    notes += different_notes(comparison.different_samples)
    if comparison.unchecked_samples:
        notes.append(
            f"for {comparison.unchecked_samples:,} samples a run does not say which"
            " data it used: only their images are compared"
        )
    if comparison.image_sizes:
        path, sizes = next(iter(comparison.image_sizes.items()))
        first, second = (f"{width} x {height}" for width, height in sizes)
        notes.append(
            f"the two runs saw {counted(len(comparison.image_sizes), 'image')} in other sizes,"
            f" first {path}: {first}, then {second} pixels"
        )
    return notes


def lacking_notes(name: str, samples: int, probes: int, other: str = "the other side") -> list[str]:
    """What a run lacks of another one."""
    missing = {"samples": samples, "probes of shared samples": probes}
    listed = [f"{number:,} {what}" for what, number in missing.items() if number]
    return [f"{name} lacks {' and '.join(listed)} of {other}, which are left out"] if listed else []


def different_notes(samples: Sequence[str], runs: str = "the runs") -> list[str]:
    names = some_of(samples, 4)
    return [f"left out, because {runs} hold different data for these samples: {names}"] if samples else []


def tests_table(
    comparison: Comparison, rows: Sequence[MetricValue], significances: Mapping[MetricSubset, Significance]
) -> ReportTable:
    tests = (
        ("p", "p"),
        ("p\nHolm", "holm"),
        ("p, Benjamini-\nHochberg", "benjamini_hochberg"),
        ("p,\nt test", "t"),
        ("p,\nMcNemar", "mcnemar"),
    )

    def detectable(change: MetricValue) -> Value:
        one = significances.get((change.metric, change.subset))
        return Value(one.detectable if one else None, unit=change.unit)

    fields: list[Field[MetricValue]] = [
        *_PLACE,
        (Column("value", "difference", "difference"), lambda change: Value(change.value, unit=change.unit)),
        *(_p_value_field(significances, *one) for one in tests),
        (Column("value", "detectable", "detectable"), detectable),
    ]
    return build_table(f"{comparison.task}, tests", fields, rows, [], [CLUSTERS_ASIDE, DETECTABLE])


def check_label(by: str | None, comparisons: Sequence[Comparison]) -> None:
    changes = (change for comparison in comparisons for change in comparison.differences)
    labels = list(dict.fromkeys(label_of(change)[0] for change in changes if change.subset != "all"))
    if by is not None and by not in labels:
        raise unknown_name("label", by, labels)


def value_at(metrics: Sequence[MetricValue], change: MetricValue) -> Cell:
    """The cell of the value at the place of a difference; empty if there is none."""
    where = (change.metric, change.subset)
    return value_cell(next((one for one in metrics if (one.metric, one.subset) == where), None))


def each_pair(comparison: Comparison, change: MetricValue) -> str:
    where = (change.metric, change.subset)
    values = [{(one.metric, one.subset): one.value for one in pair}.get(where) for pair in comparison.each]
    return " ".join("-" if value is None else number_text(value, sign=True) for value in values)


def drawn_notes(rows: Sequence[MetricValue], significances: Mapping[MetricSubset, Significance]) -> list[str]:
    """Which p-values are from random exchanges, and how small they can be."""
    draws = {place(row): test.draws for row in rows if (test := significances.get((row.metric, row.subset)))}
    drawn = [name for name, number in draws.items() if number]
    if not drawn:
        return []
    number = max(draws.values())
    least = f"{1 / (1 + number):.1g}"
    return [f"{some_of(drawn, _MOST)}: p is from {number:,} random exchanges, and never below {least}"]


def _differing_options(comparison: Comparison) -> list[str]:
    """What besides the models may cause the difference."""
    differences = [
        f"{name} {' or '.join(map(_typed, base))}, then {' or '.join(map(_typed, other))}"
        for name, (base, other) in comparison.differing_options.items()
    ]
    return [f"these runs also differ in: {'; '.join(differences)}"] if differences else []


def _p_value_field(
    significances: Mapping[MetricSubset, Significance], head: str, name: str
) -> Field[MetricValue]:
    def p_value(change: MetricValue) -> PValue:
        return PValue(getattr(significances.get((change.metric, change.subset)), name, None))

    return Column("p_value", head, name), p_value


def _typed(value: Any) -> str:
    """A value as the user types it; `default` for an option that a side does not have."""
    return "none" if value is None else option_text(value)


def _not_compared(reasons: Mapping[str, str]) -> list[str]:
    names = gathered((reason, name) for name, reason in reasons.items())
    return [f"not compared: {some_of(listed, 4)} ({reason})" for reason, listed in names.items()]


# -- Tables of changed answers: how many were gained and lost, and which they are

COUNTED = (
    "gained: right in the second run only; lost: right in the first only; both wrong: right in none,"
    " undecided and missing answers included. These and both right add up; 'of these' counts some of them"
    " again"
)
GROUPS = "a group is right if all its answers are"
HOW_TO_LIST = f"list them with --list {', '.join(LISTS)}"

NOTHING_SHARED = "the runs share no probe: their settings name the variants of a group differently"

SHORT = 60
"""The characters of a response that a table shows; CSV and JSON hold all."""


def with_changes(table: ReportTable, comparison: Comparison) -> ReportTable:
    """The table with a sentence on the changed answers, which says what `counts_table` shows."""
    counts = count_changes(comparison.answers)
    base, other = (", ".join(side.runs) for side in comparison.sides)
    gained = " and ".join(f"{one.gained:,} of {one.scored:,} {one.unit}" for one in counts if one.scored)
    lost = " and ".join(f"{one.lost:,}" for one in counts if one.scored)
    sentence = f"Right in {other} only: {gained}; in {base} only: {lost}" if gained else ""
    lead = ". ".join(filter(None, (table.lead, sentence)))
    return replace(table, lead=lead, notes=(*table.notes, *_counts_notes(counts)))


def _counts_notes(counts: Sequence[ChangeCounts]) -> list[str]:
    total = counts[0].compared + counts[0].unanswered
    unscored = total - counts[0].scored
    return [
        *([f"{unscored:,} answers have no reference in a run: they are not scored"] if unscored else []),
        *([] if total else [NOTHING_SHARED]),
    ]


def counts_table(comparison: Comparison) -> ReportTable:
    counts = count_changes(comparison.answers)
    fields: list[Field[ChangeCounts]] = [
        (Column("text", "", "unit"), lambda one: one.unit),
        (Column("count", "scored", "scored"), lambda one: one.scored),
        (Column("count", "both\nright", "both_right"), lambda one: one.both_right),
        (Column("count", "gained", "gained"), lambda one: one.gained),
        (Column("count", "lost", "lost"), lambda one: one.lost),
        (Column("count", "both\nwrong", "both_wrong"), lambda one: one.both_wrong),
        (Column("count", "of these\nundecided", "undecided"), lambda one: one.undecided),
        (Column("count", "of these\nno answer", "unanswered"), lambda one: one.unanswered),
        (Column("count", "of these\nidentical", "identical"), lambda one: one.identical),
        (Column("count", "of", "compared"), lambda one: one.compared),
    ]
    notes = [*_totals(counts), *_counts_notes(counts)]
    total = counts[0].compared + counts[0].unanswered
    legend = [COUNTED, *([GROUPS] if len(counts) > 1 else []), *([HOW_TO_LIST] if total else [])]
    return build_table(f"{comparison.task}, changed answers", fields, counts, notes, legend)


def _totals(counts: Sequence[ChangeCounts]) -> list[str]:
    """The change in right answers, which is the difference in accuracy."""
    return [
        f"{one.unit}: gained minus lost is {one.gained - one.lost:+,} of {one.scored:,}, that is "
        f"{100 * (one.gained - one.lost) / one.scored:+z.1f} points"
        for one in counts
        if one.scored
    ]


def listed_answers(comparison: Comparison, kind: str | None) -> Sequence[AnswerChange]:
    """The answers that --list names (None: all), and the other answers of groups that changed."""
    if kind is None:
        return list(comparison.answers)
    chosen = LISTS[kind]
    return [
        answer
        for group in group_changes(comparison.answers)
        if chosen(group) or any(map(chosen, group.answers))
        for answer in group.answers
        if chosen(group) or chosen(answer)
    ]


def answers_table(comparison: Comparison, answers: Sequence[AnswerChange], *, full: bool) -> ReportTable:
    def response(position: int) -> Callable[[AnswerChange], str]:
        def shown(one: AnswerChange) -> str:
            text = one.responses[position]
            return text if full else " ".join(text.split())[:SHORT]

        return shown

    fields: list[Field[AnswerChange]] = [
        (Column("text", "sample", "sample"), lambda one: one.group[0]),
        (Column("text", "variant", "variant"), lambda one: "/".join(dict.fromkeys(one.variants))),
        (Column("text", "change", "change"), lambda one: one.change),
        (Column("text", "first\nverdict", "base_verdict"), lambda one: one.verdicts[0]),
        (Column("text", "second\nverdict", "other_verdict"), lambda one: one.verdicts[1]),
        (Column("text", "response of\nthe first", "base_response"), response(0)),
        (Column("text", "response of\nthe second", "other_response"), response(1)),
    ]
    if any(one.group[1] for one in answers):
        fields.insert(2, (Column("count", "draw", "draw"), lambda one: one.group[1]))
    if len(comparison.runs) > 1:
        fields.insert(0, (Column("text", "runs", "runs"), lambda one: " / ".join(comparison.runs[one.pair])))
    return build_table(f"{comparison.task}, answers", fields, answers, [])


def sides_table(comparison: Comparison) -> ReportTable:
    """A table of what each side holds: probes, undecided, failed and missing ones."""
    fields: list[Field[ComparedSide]] = [
        (Column("text", "", "runs"), lambda side: ", ".join(side.runs)),
        (Column("text", "model", "model"), lambda side: side.model),
        (Column("text", "task", "task"), lambda side: side.task),
        (Column("count", "probes", "probes"), lambda side: side.probes),
        (Column("count", "undecided", "undecided"), lambda side: side.undecided),
        (Column("count", "failed", "failed"), lambda side: side.failed),
        (Column("count", "judge\nerrors", "judge_errors"), lambda side: side.judge_errors),
        (Column("count", "not sent", "not_sent"), lambda side: side.not_sent),
        (Column("count", "lacks\nsamples", "lacking_samples"), lambda side: side.lacking_samples),
        (Column("count", "lacks\nprobes", "lacking_probes"), lambda side: side.lacking_probes),
    ]
    return build_table(f"{comparison.task}, sides", fields, comparison.sides, [])


# -- The metrics that a comparison shows: those that the user names, or the leading ones


def compared_metrics(names: Sequence[str], comparison: Comparison, by: str | None) -> Sequence[str]:
    """The metrics that the user names, otherwise the leading ones; `by` is a label that is shown too."""
    known = list(dict.fromkeys(metric.metric for metric in comparison.differences))
    for name in names:
        if name in comparison.not_compared:
            raise UserError(f"--metric {name} cannot be compared: it {comparison.not_compared[name]}")
        if name not in known:
            raise UserError(f"--metric {name}: the runs have no such metric", expected=", ".join(known))
    runs = [
        [*values, *side.trust]
        for values, side in zip((comparison.base, comparison.other), comparison.sides, strict=True)
    ]
    shown = [
        name
        for label in dict.fromkeys((None, by))
        for name in leading_metrics(comparison.benchmark, runs, label)
    ]
    return names or list(dict.fromkeys(shown))


# -- Rows of a comparison whose confidence interval and p-value disagree about 0, and why they may

ONLY_P = (
    "significant, although the 95 % CI of the difference contains 0: too many clusters changed in one"
    " direction for chance. The CI also allows for a rare, large change in the other direction"
)
ONLY_CORRECTED = (
    "not significant, although the 95 % CI of the difference does not contain 0: p is corrected for the"
    " number of rows of the table, the CI is not"
)
ONLY_INTERVAL = (
    "not significant, although the 95 % CI of the difference does not contain 0: the CI is an approximation;"
    " p, of a permutation test, decides"
)

_MOST = 4


def disagreements(
    rows: Sequence[MetricValue], significances: Mapping[MetricSubset, Significance]
) -> list[str]:
    tests = ((row, significances.get((row.metric, row.subset))) for row in rows)
    named = gathered((reason, place(row)) for row, test in tests if test and (reason := _reason(row, test)))
    return [f"{some_of(places, _MOST)}: {reason}" for reason, places in named.items()]


def _reason(row: MetricValue, test: Significance) -> str | None:
    """Why interval and p-value disagree; None if they agree or one is missing."""
    if row.low is None or row.high is None or test.p is None:
        return None
    holds_zero = row.low <= 0 <= row.high
    if holds_zero == (not test.significant):
        return None
    if holds_zero:
        return ONLY_P
    return ONLY_CORRECTED if test.p <= LEVEL else ONLY_INTERVAL


# -- The table of non-inferiority and equivalence within a margin

RULE = (
    "non-inferior: the 95 % CI of the difference lies above -{0:g} points (below +{0:g} where lower is"
    " better), a one-sided test at 2.5 %",
    "equivalent: two one-sided tests at 5 %, which is a 90 % CI between -{0:g} and +{0:g} points",
    "each row has its own tests, without a multiple-comparison correction: no correction is needed to claim"
    ' all rows together, but a single "yes" among many rows needs new data',
    "choose the margin before you look at the results",
)


def margin_table(
    comparison: Comparison,
    rows: Sequence[MetricValue],
    verdicts: Mapping[MetricSubset, MarginVerdict],
    margin: float,
) -> ReportTable:
    """A table of the verdicts within a margin in percentage points, with the rule."""

    def verdict(row: MetricValue) -> MarginVerdict:
        return verdicts.get((row.metric, row.subset), MarginVerdict(reason=row.reason or ""))

    def ninety(row: MetricValue) -> Value:
        return Value(row.value, verdict(row).low, verdict(row).high, unit=row.unit, interval=row.interval)

    fields: list[Field[MetricValue]] = [
        *_PLACE,
        (Column("value", "difference\n90 %", "difference_90"), ninety),
        (Column("text", "better", "better"), lambda row: comparison.definitions[row.metric].better),
        (Column("text", "non-inferior", "non_inferior"), lambda row: _word(verdict(row).non_inferior)),
        (Column("text", "equivalent", "equivalent"), lambda row: _word(verdict(row).equivalent)),
    ]
    reasons = [f"{place(row)}: {verdict(row).reason}" for row in rows if verdict(row).reason]
    rules = [line.format(margin) for line in RULE]
    return build_table(
        f"{comparison.task}, within a margin of {margin:g} points", fields, rows, reasons, rules
    )


def _word(verdict: bool | None) -> str:
    return "unknown" if verdict is None else "yes" if verdict else "no"


# -- Rows made of the results of several humans


def humans_tables(
    rows: Sequence[Result], by: str | None, metrics: Sequence[str], *, whole: bool
) -> list[ReportTable]:
    """A table of the rows of humans for each task, a line for each leading metric, or if `whole` for all."""
    tables: dict[tuple[str, str, str], list[Result]] = {}
    for row in rows:
        tables.setdefault((row.benchmark, row.setting, row.judge), []).append(row)
    return [_humans_table(of, by, metrics, whole=whole) for of in tables.values()]


def _humans_table(
    rows: Sequence[Result], by: str | None, metrics: Sequence[str], *, whole: bool
) -> ReportTable:
    first = rows[0]
    shown = metrics or ([] if whole else leading_metrics(first.benchmark, [first.metrics], by))
    places = [
        one for one in first.metrics if label_of(one)[0] == (by or "") and (not shown or one.metric in shown)
    ]

    named = [(row.model.partition(", ")[2], row) for row in rows]
    fields: list[Field[MetricValue]] = [
        _PLACE[0],
        *([(Column("text", heading(by), by), lambda one: label_of(one)[1])] if by else []),
        *((Column("value", name, name), partial(value_at, row.metrics)) for name, row in named),
        (Column("count", "n", "n"), n_cell),
    ]
    title = f"{first.benchmark}:{first.setting}, humans{f', by {by}' if by else ''}"
    notes = [f"{name}: {note}" for name, row in named for note in row.notes]
    return build_table(title, fields, places, [*notes, *null_notes(places)], interval_notes(places))
