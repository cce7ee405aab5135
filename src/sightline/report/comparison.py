"""Runs beside each other, and how far the second ones are from the first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from sightline.errors import unknown_name
from sightline.metric_types import MetricValue
from sightline.metrics.comparison import Comparison, MetricSubset
from sightline.metrics.significance import Significance
from sightline.report.notes import compact, definition_notes, null_notes
from sightline.report.report_table import (
    Column,
    Field,
    PValue,
    ReportTable,
    Value,
    build_table,
    clusters_cell,
    n_cell,
    value_cell,
)
from sightline.report.varied_options import short_names

NOTE = (
    "difference: the second run less the first within each group, averaged over groups; its 95 % interval"
    " resamples clusters, both runs together; none where all of them change alike"
)

DECIDES = (
    "p: how often chance alone would set the runs so far apart, were the two sides of each cluster"
    " interchangeable (two-sided), for the {} of this table together (Holm); up to 0.05 a difference is"
    " significant"
)

CLUSTERS_ASIDE = (
    "Holm's p decides; Benjamini and Hochberg's keeps the share of false findings below it. The paired t"
    " test (ConTextual 3.3.1) and McNemar's exact test take every group for an independent one: where several"
    " share an image they find too much"
)

DETECTABLE = (
    "detectable: the difference that these groups would show 4 times of 5 (80 % power at 5 %, two-sided), by"
    " the spread of the differences between clusters; a smaller one may well be missed"
)

TOGETHER = "{} together: a group counts once in each, and the interval is of the data, not of seeds"


def rows_of(comparison: Comparison, metrics: Collection[str], by: str | None) -> list[MetricValue]:
    """The differences of these metrics over all groups and, where `by` names a label, under its values."""
    return [
        change
        for change in comparison.differences
        if change.metric in metrics and (change.subset == "all" or change.subset.partition("=")[0] == by)
    ]


def comparison_table(
    comparison: Comparison, rows: Sequence[MetricValue], found: Mapping[MetricSubset, Significance]
) -> ReportTable:
    """These differences beside the two runs' own values, and which of them are significant."""
    bases, others = (list(dict.fromkeys(runs)) for runs in zip(*comparison.runs, strict=True))
    fields: list[Field[MetricValue]] = [
        (Column("text", "metric", "metric"), lambda change: change.metric),
        (Column("text", "subset", "subset"), lambda change: change.subset),
        _of_runs("base", bases, comparison.models[0], comparison.base),
        _of_runs("other", others, comparison.models[1], comparison.other),
        (Column("value", "difference\n95 %", "difference"), value_cell),
        (Column("count", "groups", "groups"), n_cell),
        (Column("count", "clusters", "clusters"), clusters_cell),
        _chance_field(found, "p\nHolm", "holm"),
    ]
    notes = [
        *_unlike(comparison),
        *(
            f"run {run}: {errors:,} of {probes:,} probes have no answer, and count as not right"
            for run, (errors, probes) in comparison.unanswered.items()
        ),
        *definition_notes((row.metric for row in rows), comparison.definitions),
        NOTE,
        DECIDES.format("one row" if len(found) == 1 else f"{len(found)} rows"),
        *null_notes(rows),
    ]
    if comparison.each:
        fields.append((Column("text", "of each", "each"), partial(each_pair, comparison)))
        notes.append(TOGETHER.format(f"{len(comparison.runs)} pairs of runs"))
    if comparison.alone:
        notes.append(f"{comparison.alone:,} groups are in one of the runs alone, and are left out")
    return build_table(comparison.task, fields, rows, notes)


def tests_table(
    comparison: Comparison, rows: Sequence[MetricValue], found: Mapping[MetricSubset, Significance]
) -> ReportTable:
    """Every test of these differences, and which difference as many groups could have shown."""
    chances = (
        ("p", "p"),
        ("p\nHolm", "holm"),
        ("p, Benjamini-\nHochberg", "benjamini_hochberg"),
        ("p,\nt test", "t"),
        ("p,\nMcNemar", "mcnemar"),
    )

    def detectable(change: MetricValue) -> Value:
        one = found.get((change.metric, change.subset))
        return Value(one.detectable if one else None, unit=change.unit)

    fields: list[Field[MetricValue]] = [
        (Column("text", "metric", "metric"), lambda change: change.metric),
        (Column("text", "subset", "subset"), lambda change: change.subset),
        (Column("value", "difference", "difference"), lambda change: Value(change.value, unit=change.unit)),
        *(_chance_field(found, *one) for one in chances),
        (Column("value", "detectable", "detectable"), detectable),
    ]
    return build_table(f"{comparison.task}, tests", fields, rows, [CLUSTERS_ASIDE, DETECTABLE])


def check_label(by: str | None, comparisons: Sequence[Comparison]) -> None:
    """Raise UserError for a label under which these comparisons tell nothing."""
    subsets = (change.subset for comparison in comparisons for change in comparison.differences)
    known = list(dict.fromkeys(subset.partition("=")[0] for subset in subsets if subset != "all"))
    if by is not None and by not in known:
        raise unknown_name("label", by, known)


def each_pair(comparison: Comparison, change: MetricValue) -> str:
    """A difference in each pair of runs alone."""
    place = (change.metric, change.subset)
    values = [{(one.metric, one.subset): one.value for one in pair}.get(place) for pair in comparison.each]
    return " ".join("-" if value is None else f"{value:+.1f}" for value in values)


def _unlike(comparison: Comparison) -> list[str]:
    """What else than the models may make the difference."""
    told = [
        f"{name} {' or '.join(map(compact, base))}, then {' or '.join(map(compact, other))}"
        for name, (base, other) in comparison.unlike.items()
    ]
    return [f"not alike in these runs: {'; '.join(told)}"] if told else []


def _chance_field(found: Mapping[MetricSubset, Significance], head: str, name: str) -> Field[MetricValue]:
    def chance(change: MetricValue) -> PValue:
        return PValue(getattr(found.get((change.metric, change.subset)), name, None))

    return Column("p_value", head, name), chance


def _of_runs(key: str, runs: Sequence[int], model: str, metrics: Sequence[MetricValue]) -> Field[MetricValue]:
    values = {(metric.metric, metric.subset): metric for metric in metrics}
    title = f"run{'s' if len(runs) > 1 else ''} {', '.join(map(str, runs))}\n{short_names([model])[model]}"
    return Column("value", title, key), lambda change: value_cell(values.get((change.metric, change.subset)))
