"""Tables of changed answers: how many were gained and lost, and which they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sightline.reporting.report_table import Column, Field, ReportTable, build_table
from sightline.results.comparison import ComparedSide, Comparison
from sightline.results.flips import LISTS, AnswerChange, ChangeCounts, count_changes, group_changes

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


def counts_table(comparison: Comparison) -> ReportTable:
    """A table of the numbers of changes."""
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
    notes = [*_totals(counts), COUNTED, *([GROUPS] if len(counts) > 1 else [])]
    total = counts[0].compared + counts[0].unanswered
    if unscored := total - counts[0].scored:
        notes.append(f"{unscored:,} answers have no reference in a run: they are not scored")
    notes.append(HOW_TO_LIST if total else NOTHING_SHARED)
    return build_table(f"{comparison.task}, changed answers", fields, counts, notes)


def _totals(counts: Sequence[ChangeCounts]) -> list[str]:
    """The change in right answers, which is the difference in accuracy."""
    return [
        f"{one.unit}: gained minus lost is {one.gained - one.lost:+,} of {one.scored:,}, that is "
        f"{100 * (one.gained - one.lost) / one.scored:+.1f} points"
        for one in counts
        if one.scored
    ]


def listed_answers(comparison: Comparison, kind: str | None) -> Sequence[AnswerChange]:
    """The answers that --list names, and the other answers of groups that changed.

    Args:
        kind: A value of --list; None for all answers.
    """
    if kind is None:
        return comparison.answers
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
        (Column("count", "not sent", "not_sent"), lambda side: side.not_sent),
        (Column("count", "lacks\nsamples", "lacking_samples"), lambda side: side.lacking_samples),
        (Column("count", "lacks\nprobes", "lacking_probes"), lambda side: side.lacking_probes),
    ]
    return build_table(f"{comparison.task}, sides", fields, comparison.sides, [])
