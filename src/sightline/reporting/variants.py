"""Tables of what happens within the groups of a run: its variants against each other, and its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from sightline.metrics.tally import tally
from sightline.metrics.variants import FEWEST, OF_PAIRS, OF_VARIANTS, AnswerCount
from sightline.reporting.notes import MANY_UNDECIDED, REMEDY, undecided_share
from sightline.reporting.table import Column, Field, ReportTable, Value, build_table, estimate
from sightline.text import counted
from sightline.types import Group, MetricValue, Result, split_subset

_Row = tuple[tuple[str, ...], Mapping[str, MetricValue]]
"""A variant, or two, and the metrics under it by their names."""

_COMPARED = (
    "groups count whose answers all have a reference; undecided and missing answers are not right",
    f"alone: the only answer of its group that is right, or that is wrong; in groups of {FEWEST} or more",
    "differ: one of the two answers is right, the other one is not",
)


def variant_tables(title: str, groups: Iterable[Group], result: Result) -> list[ReportTable]:
    """Which variant differs from the others of its group, and which answers of two variants are right.

    Where no verdict is decided, or no group can be compared, a table without rows says so.
    """
    values = tally(groups, [*OF_VARIANTS, *OF_PAIRS])
    rows: dict[tuple[str, ...], dict[str, MetricValue]] = {}
    for value in values:
        if value.subset != "all" and value.value is not None:
            names = tuple(split_subset(value.subset)[1].split("\0"))
            rows.setdefault(names, {})[value.metric] = value
    of_variants = [row for row in rows.items() if len(row[0]) == 1]
    # The variant that differs alone most often comes first.
    of_variants.sort(key=lambda row: -sum(_count(row, name) for name in ("alone_wrong", "alone_right")))
    of_pairs = [row for row in rows.items() if len(row[0]) > 1]
    is_shared_by_three = any(name in row[1] for row in of_variants for name in ("alone_wrong", "alone_right"))
    alone: list[Field[_Row]] = [
        (Column("value", "alone wrong\n95 %", "alone_wrong"), lambda row: _share(row, "alone_wrong")),
        (Column("value", "alone right\n95 %", "alone_right"), lambda row: _share(row, "alone_right")),
    ]
    variant: list[Field[_Row]] = [
        (Column("text", "variant", "variant"), lambda row: row[0][0]),
        (Column("value", "right\n95 %", "right"), lambda row: estimate(row[1]["right"])),
        *(alone if is_shared_by_three else ()),
        (Column("count", "groups", "groups"), lambda row: int(row[1]["right"].n)),
    ]
    pair: list[Field[_Row]] = [
        (Column("text", "variant", "first"), lambda row: row[0][0]),
        (Column("text", "with", "second"), lambda row: row[0][1]),
        (Column("count", "both\nright", "both_right"), lambda row: _count(row, "both_right")),
        (Column("count", "only the\nfirst", "only_first"), lambda row: _count(row, "only_first")),
        (Column("count", "only the\nsecond", "only_second"), lambda row: _count(row, "only_second")),
        (Column("count", "both\nwrong", "both_wrong"), lambda row: _count(row, "both_wrong")),
        (Column("value", "differ\n95 %", "differ"), lambda row: estimate(row[1]["differ"])),
    ]
    sent = result.probes - result.not_sent
    if sent and result.undecided == sent:
        note = f"all {counted(sent, 'verdict')} are undecided: no variant can differ; {REMEDY}"
        return [build_table(f"{title}, variants", variant, [], [note])]
    if not of_variants:
        return [build_table(f"{title}, variants", variant, [], [_NONE])]
    is_open = result.undecided > MANY_UNDECIDED * sent
    lead = f"undecided verdicts ({undecided_share(result)}) count as not right; {REMEDY}" if is_open else ""
    legend = _COMPARED[: 1 + is_shared_by_three]
    return [
        replace(build_table(f"{title}, variants", variant, of_variants, [], legend), lead=lead),
        build_table(f"{title}, two variants", pair, of_pairs, [], _COMPARED[2:]),
    ]


_NONE = "no group has several answers that all have a reference"


def _share(row: _Row, metric: str) -> Value | None:
    return estimate(row[1][metric]) if metric in row[1] else None


def _count(row: _Row, metric: str) -> int:
    value = row[1].get(metric)
    return 0 if value is None or value.value is None else round(value.value / 100 * value.n)


def answers_table(title: str, counts: Iterable[AnswerCount], label: str | None) -> ReportTable:
    """The most frequent answers, under each value of a label."""
    fields: list[Field[AnswerCount]] = [
        *([(Column("text", label, label), lambda one: one.value)] if label else []),
        (Column("text", "answer", "answer"), lambda one: one.answer or "(empty)"),
        (Column("count", "n", "n"), lambda one: one.n),
        (Column("value", "share", "share"), lambda one: Value(100 * one.n / one.of)),
        (Column("count", "right", "right"), lambda one: one.right),
        (Column("count", "of answers", "of"), lambda one: one.of),
    ]
    by = f", by {label}" if label else ""
    legend = (
        "answer: as exact comparison reads it, without case, articles, punctuation; with options, the option",
    )
    return build_table(f"{title}, answers{by}", fields, counts, [], legend)
