"""Tables of what happens within the groups of a run: its variants against each other, and its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product, starmap
from typing import NamedTuple

from msgspec.structs import replace

from sightline.metrics.flips import GroupPair, Pairing
from sightline.metrics.repeats import repeat_metrics, repeated_probes
from sightline.metrics.tally import contains_undecided, tally, undecided_ends
from sightline.metrics.variants import (
    FEWEST,
    OF_GROUPS,
    OF_PAIRS,
    OF_VARIANTS,
    PAIR,
    VARIANT,
    AnswerCount,
    order_metrics,
)
from sightline.reporting.causes import right_answers
from sightline.reporting.notes import MANY_UNDECIDED, REMEDY, undecided_share
from sightline.reporting.table import Column, Field, ReportTable, Value, build_table, estimate
from sightline.text import counted
from sightline.types import Group, MetricValue, Result, split_subset

_Row = tuple[tuple[str, ...], Mapping[str, MetricValue]]
"""A variant, or two, and the metrics under it by their names."""

_COMPARED = (
    "groups count whose answers all have a reference; undecided and missing answers are not right",
    f"alone: the only answer of its group that is right, or that is wrong; in groups of {FEWEST} or more",
    "drop: the share of right answers under the first variant minus that under the second",
)

_WHOLE = (
    "all right: the worst case over the variants; some right: {}",
    "answers differ: of groups with all answers and one reference, those with more than one answer",
)


def variant_tables(
    title: str, groups: Sequence[Group], result: Result, clean: str | None = None
) -> list[ReportTable]:
    """What becomes of whole groups, which variant differs from the others, and two variants side by side.

    Where no verdict is decided, or no group can be compared, a table without rows says so.

    `clean`: the variant beside which each other one is put; None for every two.
    """
    if clean is not None:
        groups = [_beginning_with(clean, group) for group in groups]
    values = tally(groups, [*OF_GROUPS, *OF_VARIANTS, *OF_PAIRS])
    rows: dict[tuple[str, ...], dict[str, MetricValue]] = {}
    for value in values:
        label, named = split_subset(value.subset)
        if label in (VARIANT, PAIR) and value.value is not None:
            names = tuple(named.split("\0"))
            if clean is None or len(names) == 1 or names[0] == clean:
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
        (Column("value", "drop\n95 %", "drop"), lambda row: estimate(row[1]["drop"])),
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
        replace(_of_groups(title, groups, values), lead=lead),
        build_table(f"{title}, variants", variant, of_variants, [], legend),
        build_table(f"{title}, two variants", pair, of_pairs, [], _COMPARED[2:]),
    ]


def _beginning_with(variant: str, group: Group) -> Group:
    return replace(group, outcomes=tuple(sorted(group, key=lambda outcome: outcome.variant != variant)))


def _of_groups(title: str, groups: Sequence[Group], values: Iterable[MetricValue]) -> ReportTable:
    names = [metric.name for metric in OF_GROUPS]
    rows = [one for one in values if one.subset == "all" and one.metric in names and one.n]
    unanswered = sum(not group.complete for group in groups if len(group) > 1)
    missing = f"{counted(unanswered, 'group')} with a missing answer, which is not right"
    notes = [missing] if unanswered else []
    several = sum(len({right_answers(outcome) for outcome in group}) > 1 for group in groups)
    some = (
        f"groups with right and wrong answers; {counted(several, 'group')} with different right answers have "
        "some right if all answers are the same"
    )
    legend = (_WHOLE[0].format(some if several else "groups that flip"), *_WHOLE[1:])
    return build_table(f"{title}, groups", _METRIC_FIELDS, rows, notes, legend)


class Lead(NamedTuple):
    """By how much a run leads over another one under the clean variant and under another one.

    `ends`: the values, then those at both ends of what undecided verdicts allow.
    """

    runs: tuple[str, str]
    variant: str
    ends: Sequence[Mapping[str, MetricValue]]

    @property
    def values(self) -> Mapping[str, MetricValue]:
        return self.ends[0]

    @property
    def order(self) -> str:
        """What becomes of the order of the two runs, whatever the undecided verdicts are."""
        before, after = ([end[name] for end in self.ends] for name in ("under_clean", "under_variant"))
        orders = set(starmap(_order, product(before, after)))
        least = "changes" if orders <= {*_ORDERS[:2]} else "not decided"
        return orders.pop() if len(orders) == 1 else least


def _order(before: MetricValue, after: MetricValue) -> str:
    """What becomes of the order of two runs; significant if each interval is on its side of 0."""
    if not before.value or not after.value:
        return "tie"
    if before.value * after.value > 0:
        return "same"
    excluded = [(one.low or 0) * (one.high or 0) > 0 for one in (before, after)]
    return "changes, significantly" if all(excluded) else "changes"


_ORDERS = ("changes, significantly", "changes", "not decided", "tie", "same")


def leads(pairing: Pairing, runs: tuple[str, str], clean: str) -> list[Lead]:
    """The leads of the second of two runs, a row for each variant beside the clean one."""
    pairs = list(pairing.pairs)
    ends: list[Iterable[GroupPair]] = [pairs]
    if any(contains_undecided(group) for pair in pairs for group in pair):
        ends += zip(*map(undecided_ends, pairs), strict=True)
    found = [_leads(end, clean) for end in ends]
    return [Lead(runs, variant, [end[variant] for end in found]) for variant in found[0]]


def _leads(pairs: Iterable[GroupPair], clean: str) -> dict[str, dict[str, MetricValue]]:
    of_base, of_other = zip(*pairs, strict=True)
    rows: dict[str, dict[str, MetricValue]] = {}
    metrics = order_metrics({group.key: base for group, base in zip(of_other, of_base, strict=True)}, clean)
    for value in tally(of_other, metrics):
        label, variant = split_subset(value.subset)
        if label == VARIANT:
            rows.setdefault(variant, {})[value.metric] = value
    return rows


def order_table(
    title: str, found: Sequence[Lead], clean: str, missing: int, left_out: Sequence[str]
) -> ReportTable:
    """How often the order of two runs changes from the clean variant to another one.

    Args:
        missing: The answers without a response in groups that count.
        left_out: What the runs do not share.
    """
    rows = sorted(found, key=lambda one: _ORDERS.index(one.order))
    of_two = len({row.runs for row in rows}) == 1
    names: list[Field[Lead]] = [
        (Column("text", "run", "first"), lambda row: row.runs[0]),
        (Column("text", "with", "second"), lambda row: row.runs[1]),
    ]
    fields: list[Field[Lead]] = [
        *([] if of_two else names),
        (Column("text", "variant", "variant"), lambda row: row.variant),
        (Column("value", f"lead,\n{clean}", "clean"), lambda row: estimate(row.values["under_clean"])),
        (Column("value", "lead,\nvariant", "lead"), lambda row: estimate(row.values["under_variant"])),
        (Column("value", "change\n95 %", "change"), lambda row: estimate(row.values["change"])),
        (Column("count", "groups", "groups"), lambda row: int(row.values["change"].n)),
        (Column("count", "reversed", "reversed"), lambda row: _count((("",), row.values), "reversed")),
        (Column("text", "order", "order"), lambda row: row.order),
    ]
    if not rows:
        title += ", order under other variants"
        return build_table(title, fields, [], ["no group has another variant in both runs", *left_out])
    changed = [row for row in rows if row.order.startswith("changes")]
    surely = sum(row.order == _ORDERS[0] for row in changed)
    unknown = sum(row.order == "not decided" for row in rows)
    lead = f"The order of two runs changes in {len(changed)} of {counted(len(rows), 'row')}"
    notes = [f"lead: {rows[0].runs[1]} minus {rows[0].runs[0]}"] if of_two else []
    notes += [f"{counted(missing, 'answer')} missing, which are not right"] if missing else []
    notes += left_out
    table = build_table(f"{title}, order under other variants", fields, rows, notes, _ORDER)
    lead += f", significantly in {surely}" + (f"; {unknown} not decided" if unknown else "")
    return replace(table, lead=lead)


_ORDER = (
    "lead: the share of right answers of the second run minus that of the first, over the groups with both"
    " variants in both runs",
    "change: the lead under the variant minus that under the clean one, within groups",
    "reversed: groups that one run has right under the clean variant, and only the other under the variant",
    "significantly: the CI of each lead is on its own side of 0; not corrected for the number of rows",
    "not decided: undecided verdicts, which count as not right, could turn the order",
)


def repeats_table(title: str, groups: Iterable[Group]) -> ReportTable:
    """How stable the answers to requests are that were sent several times."""
    repeated = repeated_probes(groups)
    if not repeated:
        return build_table(
            f"{title}, repeats", _METRIC_FIELDS, [], ["no request was sent twice: --repeats N"]
        )
    metrics = repeat_metrics(max(map(len, repeated)))
    legend = [*(f"{metric.name}: {metric.meaning}" for metric in metrics if metric.meaning), *_PASSES]
    rows = [value for value in tally(repeated, metrics) if value.subset == "all"]
    return build_table(f"{title}, repeats", _METRIC_FIELDS, rows, [], legend)


_PASSES = (
    "undecided verdicts and missing answers are not right; a request with fewer than k answers has no value",
    "pass^k: k of the n repeats are all right, C(c, k) / C(n, k) with c right ones (Yao et al. 2024)",
    "pass@k: one of k is right, 1 - C(n - c, k) / C(n, k) (Chen et al. 2021)",
)
_METRIC_FIELDS: list[Field[MetricValue]] = [
    (Column("text", "metric", "metric"), lambda one: one.metric),
    (Column("value", "value\n95 %", "value"), estimate),
    (Column("count", "n", "n"), lambda one: int(one.n)),
    (Column("count", "clusters", "clusters"), lambda one: one.clusters),
]
_NONE = "no group has several answers that all have a reference"


def _share(row: _Row, metric: str) -> Value | None:
    return estimate(row[1][metric]) if metric in row[1] else None


def _count(row: _Row, metric: str) -> int:
    value = row[1].get(metric)
    return 0 if value is None or value.value is None else round(value.value / 100 * value.n)


def answers_table(title: str, runs: Mapping[str, Iterable[AnswerCount]], label: str | None) -> ReportTable:
    """The most frequent answers of each run, under each value of a label those of all runs together."""
    rows = [(name, one) for name, counts in runs.items() for one in counts]
    fields: list[Field[tuple[str, AnswerCount]]] = [
        *([(Column("text", label, label), lambda row: row[1].value)] if label else []),
        *([(Column("text", "run", "run"), lambda row: row[0])] if len(runs) > 1 else []),
        (Column("text", "answer", "answer"), lambda row: row[1].answer or "(empty)"),
        (Column("count", "n", "n"), lambda row: row[1].n),
        (Column("value", "share", "share"), lambda row: Value(100 * row[1].n / row[1].of)),
        (Column("count", "right", "right"), lambda row: row[1].right),
        (Column("count", "of answers", "of"), lambda row: row[1].of),
    ]
    by = f", by {label}" if label else ""
    legend = (
        "answer: as exact comparison reads it, without case, articles, punctuation; with options, the option",
    )
    return build_table(
        f"{title}, answers{by}", fields, sorted(rows, key=lambda row: row[1].value), [], legend
    )
