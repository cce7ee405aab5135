"""`sightline annotate status`: progress and agreement of a project."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sightline.cli.annotation_arguments import opened_project, state_of
from sightline.cli.options import add_printing, add_store
from sightline.cli.printing import print_json, print_tables
from sightline.output import print_line, print_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sightline.annotation.label_agreement import LabelAgreement
    from sightline.annotation.overview import Overview
    from sightline.annotation.store import ProjectRow
    from sightline.reporting.report_table import ReportTable

SUMMARY = "print progress, annotators, agreement and items without a decision"

EXAMPLE = """examples:
  sightline annotate status
  sightline annotate status blind
  sightline annotate status blind --json

Without PROJECT, the projects of the store are listed.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `annotate status`."""
    parser.epilog = EXAMPLE
    parser.add_argument("project", nargs="?", metavar="PROJECT", help="name or number of the project")
    add_printing(parser, by=False)
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the overview of a project, or the list of the projects."""
    import time

    from sightline.annotation.label_agreement import label_agreement
    from sightline.annotation.overview import overview

    if options.project is None:
        return _print_projects(options)
    with opened_project(options.project, options.store) as (store, row):
        state, annotators = state_of(store, row), store.annotators(row.number)
    seen = overview(state, annotators, time.time(), growth=0)
    labels = label_agreement(state, annotators)
    if options.format == "json":
        about = {"name": row.project.name, "task": row.project.task.name}
        print_json({**about, "overview": seen, "labels": labels})
        return 0
    print_tables([_table(row, seen), *_label_tables(labels)], options.format)
    return 0


def _print_projects(options: argparse.Namespace) -> int:
    import time

    from sightline.annotation.store import AnnotationStore
    from sightline.engine.store import Store

    store = Store.open(options.store, create=False)
    try:
        rows = AnnotationStore(store, time.time).projects()
    finally:
        store.close()
    if options.format == "json":
        print_json(
            [
                {
                    "number": row.number,
                    "name": row.project.name,
                    "task": row.project.task.name,
                    "sources": row.project.sources,
                    "closed": row.closed is not None,
                }
                for row in rows
            ]
        )
        return 0
    for row in rows:
        ended = ", closed" if row.closed is not None else ""
        print_line(f"{row.number}  {row.project.name}: {row.project.task.name}{ended}")
    if not rows:
        print_note("no annotation project is in the store; `sightline annotate new` starts one")
    return 0


def _table(row: ProjectRow, seen: Overview) -> ReportTable:
    from sightline.reporting.report_table import Column, build_table

    fields = (
        (Column("text", "annotator", "annotator"), lambda one: one.annotator.name),
        (Column("text", "role", "role"), lambda one: one.annotator.role),
        (Column("count", "done", "done"), lambda one: one.done),
        (Column("count", "skipped", "skipped"), lambda one: one.skipped),
        (
            Column("text", "gold", "gold"),
            lambda one: f"{one.gold.right} of {one.gold.judged}" if one.gold.judged else "",
        ),
        (
            Column("text", "agrees\n%", "agreement"),
            lambda one: "" if one.agreement is None else f"{one.agreement:.1f}",
        ),
        (
            Column("text", "median\ns", "seconds"),
            lambda one: "" if one.seconds is None else f"{one.seconds:.0f}",
        ),
        (Column("text", "state", "state"), lambda one: one.standing),
    )
    return build_table(f"{row.project.name}: {row.project.task.title}", fields, seen.annotators, _notes(seen))


def _label_tables(labels: Sequence[LabelAgreement]) -> list[ReportTable]:
    """The agreement on labels; no table for a task without labels."""
    from sightline.reporting.report_table import Column, build_table, clusters_cell, n_cell, value_cell

    if not labels:
        return []
    fields = (
        (Column("text", "label", "label"), lambda one: one.name),
        (Column("value", "agree %\n95 %", "agreement"), lambda one: value_cell(one.share)),
        (Column("value", "alpha\n95 %", "alpha"), lambda one: value_cell(one.alpha)),
        (Column("count", "pairs", "pairs"), lambda one: n_cell(one.share)),
        (Column("count", "clusters", "clusters"), lambda one: clusters_cell(one.share)),
    )
    notes = dict.fromkeys(one.share.reason for one in labels if one.share.reason)
    return [build_table("Agreement on labels", fields, labels, list(notes))]


def _notes(seen: Overview) -> list[str]:
    from sightline.annotation.overview import stuck_sentence

    alpha = seen.alpha
    decided, ties = len(seen.with_status("decided")), seen.with_status("tie")
    settled = len(seen.with_status("settled"))
    notes = [
        f"judgements: {seen.judgements:,} of {seen.wanted:,}",
        f"items: {seen.items:,}, decided {decided:,}, settled {settled:,}, without a decision {len(ties):,}",
    ]
    if alpha.value is not None:
        limits = f" [{alpha.low:.2f}, {alpha.high:.2f}]" if alpha.low is not None else ""
        notes.append(f"Krippendorff's alpha {alpha.value:.2f}{limits} on {seen.shared:,} items")
    elif alpha.reason:
        notes.append(f"no alpha: {alpha.reason}")
    if ties:
        notes.append(f"items to settle: {', '.join(map(str, ties[:20]))}")
    if stuck := stuck_sentence(seen):
        notes.append(stuck)
    if seen.broken:
        notes.append(f"reported as broken: {', '.join(map(str, seen.broken[:20]))}")
    return notes
