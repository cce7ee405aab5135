"""`sightline show` with several runs: in how many of them each group is wrong, or inconsistent."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sightline.cli.printing import print_json, print_tables
from sightline.counts import counted
from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.recurring_groups import RecurringGroup, recurring_groups
from sightline.reporting.report_table import Column, Field, build_table


class RecurringGroups(Struct, frozen=True):
    """The first groups of a list over several runs; `total` is the number of groups in the list."""

    runs: Sequence[int]
    total: int
    groups: Sequence[RecurringGroup]


def print_recurring(
    index: OutcomeIndex, runs: Sequence[int], wanted: GroupFilter, limit: int, *, as_json: bool
) -> None:
    groups = recurring_groups([index.open(run) for run in runs], wanted)
    shown = RecurringGroups(runs, len(groups), groups[:limit])
    if as_json:
        print_json(shown)
        return
    what = wanted.consistency or wanted.verdict
    fields: list[Field[RecurringGroup]] = [
        (Column("text", "group", "sample"), lambda one: one.sample),
        (Column("text", "draw", "draw"), lambda one: str(one.draw)),
        (Column("text", "pools", "pooled"), lambda one: one.pooled),
        (Column("count", f"{what}\nin runs", "selected"), lambda one: one.selected),
        (Column("count", "of", "runs"), lambda one: one.runs),
        (Column("text", "question", "question"), lambda one: one.question),
    ]
    varied = [
        field
        for field in fields
        if field[0].key not in ("draw", "pooled") or len(set(map(field[1], groups))) > 1
    ]
    total = counted(shown.total, "group")
    notes = [f"{len(shown.groups)} of {total}, those in most runs first; of: the runs that have the group"]
    title = f"{what} in {counted(len(runs), 'run')}"
    print_tables([build_table(title, varied, shown.groups, notes)], "table")
