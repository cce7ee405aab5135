"""Tables that compare runs: values, differences and significance tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from sightline.errors import UserError, some_of, unknown_name
from sightline.metric_types import MetricValue, PublishedValue
from sightline.metrics.confusion import similarity_warning
from sightline.metrics.significance import Significance
from sightline.reporting.interval_and_test import disagreements
from sightline.reporting.notes import definition_notes, interval_notes, null_notes, place, published_notes
from sightline.reporting.option_texts import option_text
from sightline.reporting.report_table import (
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
    value_cell,
)
from sightline.reporting.varied_options import short_names
from sightline.results.comparison import ComparedSide, Comparison, MetricSubset
from sightline.results.run_names import are_named

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
    """The differences that a table shows.

    Args:
        by: A label whose values are rows too, or None.
    """
    order = list(metrics)
    return sorted(
        (
            change
            for change in comparison.differences
            if change.metric in order and (change.subset == "all" or change.subset.partition("=")[0] == by)
        ),
        key=lambda change: order.index(change.metric),
    )


def check_rows(metrics: Sequence[str], rows: Sequence[MetricValue], comparison: Comparison) -> None:
    """Check that every requested metric has a row: some metrics have values under labels only."""
    shown = {row.metric for row in rows}
    for name in metrics:
        if name not in shown:
            subsets = [change.subset for change in comparison.differences if change.metric == name]
            labels = dict.fromkeys(f"--by {subset.partition('=')[0]}" for subset in subsets)
            raise UserError(
                f"{name} has no row over all samples: it has values under labels only",
                expected=" or ".join(labels),
            )


def comparison_table(
    comparison: Comparison,
    rows: Sequence[MetricValue],
    significances: Mapping[MetricSubset, Significance],
    *,
    full: bool = False,
) -> ReportTable:
    """A table of differences with the values of both runs and the p-values."""
    base, other = comparison.sides
    fields: list[Field[MetricValue]] = [
        (Column("text", "metric", "metric"), lambda change: change.metric),
        (Column("text", "subset", "subset"), lambda change: change.subset),
        _of_side("first", base, comparison.base),
        _of_side("second", other, comparison.other),
        (Column("value", "difference\n95 %", "difference"), value_cell),
        (Column("count", "groups", "groups"), n_cell),
        (Column("count", "clusters", "clusters"), clusters_cell),
        _p_value_field(significances, "p\nHolm", "holm"),
    ]
    notes = [
        *comparison_notes(comparison),
        *definition_notes((row.metric for row in rows), comparison.definitions),
        NOTE,
        CHANGE,
        *interval_notes(rows),
        *_decides(len(significances)),
        *disagreements(rows, significances),
        *null_notes(rows),
        *_published_notes(comparison, rows),
    ]
    if comparison.each:
        fields.append((Column("text", "of each", "each"), partial(each_pair, comparison)))
        notes.append(TOGETHER.format(f"{len(comparison.runs)} pairs of runs"))
    if any(bounds[0] != bounds[1] for bounds in map(_bounds_of(comparison), rows) if bounds):
        fields.insert(5, _if_decided(comparison))
        notes.append(IF_DECIDED)
    fields += _published_fields(comparison, rows)
    if full:
        fields += [_run_field("first", base), _run_field("second", other)]
    return build_table(comparison.task, fields, rows, notes)


def comparison_notes(comparison: Comparison) -> list[str]:
    """What limits a comparison: options that differ, what the runs do not share, what their answers lack."""
    return [*_differing_options(comparison), *pairing_notes(comparison)]


def pairing_notes(comparison: Comparison) -> list[str]:
    """What the runs do not share, and what their answers lack."""
    notes = []
    for side in comparison.sides:
        name = ", ".join(side.runs)
        missing = {"samples": side.lacking_samples, "probes of shared samples": side.lacking_probes}
        listed = [f"{number:,} {what}" for what, number in missing.items() if number]
        if listed:
            notes.append(f"{name} lacks {' and '.join(listed)} of the other side, which are left out")
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
        if side.not_sent:
            notes.append(f"{name}: {side.not_sent:,} probes were not sent; their groups are left out")
        if warning := similarity_warning(side.confused):
            notes.append(f"{name}: {warning}")
    if comparison.different_samples:
        names = some_of(comparison.different_samples, 4)
        notes.append(f"left out, because the runs hold different data for these samples: {names}")
    if comparison.unchecked_samples:
        notes.append(
            f"for {comparison.unchecked_samples:,} samples a run of an earlier version does not say which"
            " data it used: only their images are compared"
        )
    return [*notes, *_not_compared(comparison.not_compared)]


def tests_table(
    comparison: Comparison, rows: Sequence[MetricValue], significances: Mapping[MetricSubset, Significance]
) -> ReportTable:
    """A table of all significance tests and the detectable differences."""
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
        (Column("text", "metric", "metric"), lambda change: change.metric),
        (Column("text", "subset", "subset"), lambda change: change.subset),
        (Column("value", "difference", "difference"), lambda change: Value(change.value, unit=change.unit)),
        *(_p_value_field(significances, *one) for one in tests),
        (Column("value", "detectable", "detectable"), detectable),
    ]
    return build_table(f"{comparison.task}, tests", fields, rows, [CLUSTERS_ASIDE, DETECTABLE])


def check_label(by: str | None, comparisons: Sequence[Comparison]) -> None:
    """Check that comparisons have differences under a label.

    Args:
        by: The name of the label, or None.
    """
    subsets = (change.subset for comparison in comparisons for change in comparison.differences)
    labels = list(dict.fromkeys(subset.partition("=")[0] for subset in subsets if subset != "all"))
    if by is not None and by not in labels:
        raise unknown_name("label", by, labels)


def each_pair(comparison: Comparison, change: MetricValue) -> str:
    """The difference of each pair of runs alone."""
    place = (change.metric, change.subset)
    values = [{(one.metric, one.subset): one.value for one in pair}.get(place) for pair in comparison.each]
    return " ".join("-" if value is None else f"{value:+.1f}" for value in values)


def _decides(tests: int) -> list[str]:
    """Which p-value decides, where there is one."""
    return [DECIDES.format("one row" if tests == 1 else f"{tests} rows")] if tests else []


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


def _published(
    comparison: Comparison, rows: Sequence[MetricValue]
) -> dict[tuple[str, str], dict[MetricSubset, PublishedValue]]:
    """The paper's figures by its row and table; those for the setting of the base run first."""
    shown = {(row.metric, row.subset) for row in rows}
    found: dict[tuple[str, str], dict[MetricSubset, PublishedValue]] = {}
    for metric in (*comparison.base, *comparison.other):
        for figure in (metric.published or ()) if (metric.metric, metric.subset) in shown else ():
            figures = found.setdefault((figure.row, figure.table), {})
            figures.setdefault((metric.metric, metric.subset), figure)
    return found


def _published_fields(comparison: Comparison, rows: Sequence[MetricValue]) -> list[Field[MetricValue]]:
    """A column for each row and table of the paper."""

    def field(row: str, table: str, figures: Mapping[MetricSubset, PublishedValue]) -> Field[MetricValue]:
        def cell(change: MetricValue) -> Cell:
            figure = figures.get((change.metric, change.subset))
            return None if figure is None else PublishedCell(figure, None)

        return Column("published", heading(row, table), f"{row} ({table})", differences=False), cell

    return [field(row, table, figures) for (row, table), figures in _published(comparison, rows).items()]


def _published_notes(comparison: Comparison, rows: Sequence[MetricValue]) -> list[str]:
    places = {(row.metric, row.subset): place(row) for row in rows}
    return published_notes(
        [
            (places[where], figure)
            for figures in _published(comparison, rows).values()
            for where, figure in figures.items()
        ]
    )


def _of_side(key: str, side: ComparedSide, metrics: Sequence[MetricValue]) -> Field[MetricValue]:
    values = {(metric.metric, metric.subset): metric for metric in metrics}
    names = [name.removeprefix("run ") for name in side.runs]
    numbered = all(name.isdecimal() for name in names)
    title = ", ".join(names) if not numbered else f"run{'s' if len(names) > 1 else ''} {', '.join(names)}"
    title = heading(title, *([] if are_named(side.runs) else [short_names([side.model])[side.model]]))
    return Column("value", title, key), lambda change: value_cell(values.get((change.metric, change.subset)))


def _run_field(key: str, side: ComparedSide) -> Field[MetricValue]:
    names = ", ".join(side.runs)
    return Column("text", f"{key} run", f"{key} run"), lambda _: names


def _typed(value: Any) -> str:
    """A value as the user types it; `default` for an option that a side does not have."""
    return "none" if value is None else option_text(value)


def _not_compared(reasons: Mapping[str, str]) -> list[str]:
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return [f"not compared: {some_of(listed, 4)} ({reason})" for reason, listed in names.items()]


def _bounds_of(comparison: Comparison) -> Callable[[MetricValue], tuple[float, float] | None]:
    return lambda change: comparison.undecided_bounds.get((change.metric, change.subset))


def _if_decided(comparison: Comparison) -> Field[MetricValue]:
    """The lowest and highest difference that undecided verdicts allow."""
    bounds_of = _bounds_of(comparison)

    def cell(change: MetricValue) -> Cell:
        bounds = bounds_of(change)
        return None if bounds is None else Value(change.value, *bounds, unit=change.unit)

    return Column("value", "if undecided\nwere decided", "if_decided"), cell
