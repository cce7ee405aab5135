"""`sightline build verify`: human reviewers mark each line of a table, and wrong lines are dropped."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import print_by_reason
from sightline.cli.build_review_options import add_review_lists, checked_lists, refuse_no_review
from sightline.cli.printing import print_json
from sightline.output import print_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sightline.builders.review_lists import AcceptanceRule
    from sightline.builders.verify import ReviewedLine, TableLine
    from sightline.reporting.report_table import ReportTable

SUMMARY = "drop lines of a table that human reviewers mark wrong (ConTextual, II-Bench)"

EXAMPLE = """examples:
  sightline build verify mine/contextual_val.csv --write list.csv
  sightline build verify mine/contextual_val.csv --human anna.csv --human ben.csv --out verified
  sightline build verify verified/contextual_val.csv --write review.csv
  sightline build verify questions.csv --human five.csv --accept 4/5 --not-by author --out round1
  sightline build verify questions.csv round1/rejected.csv --human five.csv --human again.csv --accept 4/5

--write lists all lines for reviewers, who write 'right' or 'wrong' into the column mark, and their name into
by. --human reads their lists. DIR receives the table of accepted lines, rejected.csv for revision, the images
of both tables (ConTextual's layout), and verification.json. A line is identified by its
content: marks do not apply to a line that changed, and a revised line is reviewed again.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build verify`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("tables", metavar="TABLE.csv", nargs="+", help="tables with the same columns, as contextual_val.csv")
    add_review_lists(
        parser, write="write a list of the lines for reviewers", human="list of --write with marks"
    )
    add("--accept", metavar="K/N", help="accept lines that K of N reviewers mark right (default: majority)")
    add(
        "--not-by",
        action="append",
        default=[],
        metavar="NAME",
        help="refuse the marks of this annotator; may repeat",
    )
    add("--out", metavar="DIR", help="folder for the accepted lines and rejected.csv")
    add("--json", action="store_true", help="print verification.json instead of the table")
    add("--force", action="store_true", help="replace LIST.csv, or a folder with other lines")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write a list, or read marks, write the accepted lines and print their share; the exit status."""
    from sightline.builders.built_folder import refuse_other_contents
    from sightline.builders.review_lists import parse_rule, read_marks
    from sightline.builders.verify import (
        ACCEPTED,
        REJECTED,
        RIGHT,
        identify_build,
        read_table_lines,
        verify,
        write_accepted,
    )

    refuse_no_review(options)
    rule = parse_rule(options.accept)
    tables = [Path(file) for file in options.tables]
    lists = checked_lists(options, tables)
    lines = read_table_lines(tables)
    if options.write:
        _write_list(lines, Path(options.write))
    if not lists:
        return 0
    reviewed = verify(lines, read_marks(lists, RIGHT), rule, not_by=options.not_by)
    if options.out:
        out, name = Path(options.out), tables[0].name
        table = ACCEPTED if name == REJECTED else name
        refuse_other_contents(out, identify_build(lines, rule), force=options.force)
        manifest = write_accepted(reviewed, rule, table, out, force=options.force)
        print_note(f"{out / table}: {manifest.groups:,} lines, {manifest.images:,} images next to it")
        if manifest.missing:
            print_note(f"images missing or broken: {len(manifest.missing):,}")
            print_by_reason(manifest.missing)
    _print(reviewed, rule, options)
    return 0


def _write_list(lines: Sequence[TableLine], path: Path) -> None:
    from sightline.builders.review_lists import write_list
    from sightline.builders.verify import review_columns

    write_list(path, review_columns(lines))
    print_note(f"{path}: {len(lines):,} lines for reviewers; mark: 'right' or 'wrong', by: a name")


def _print(reviewed: Sequence[ReviewedLine], rule: AcceptanceRule, options: argparse.Namespace) -> None:
    if options.json:
        from sightline.builders.verify import verification_report

        print_json(verification_report(reviewed, rule))
        return
    from sightline.reporting.terminal import show

    show([_table(reviewed, rule)])


def _table(reviewed: Sequence[ReviewedLine], rule: AcceptanceRule) -> ReportTable:
    from sightline.builders.verify import share_right
    from sightline.reporting.report_table import (
        Column,
        build_table,
        clusters_cell,
        n_cell,
        published_cell,
        value_cell,
    )

    metric = share_right(reviewed)
    published = metric.published[0] if metric.published else None
    verdicts = [one.accepted for one in reviewed]
    notes = [
        f"accepted {verdicts.count(True):,}, rejected {verdicts.count(False):,}, by {rule.text}",
        *([f"undecided: {verdicts.count(None):,}"] if None in verdicts else []),
        *([f"human: {metric.judge}"] if metric.judge else []),
        *([f"right: {metric.reason}"] if metric.reason else []),
        *([f"published: {published.note}"] if published else []),
    ]
    fields = (
        (Column("text", "found", "measure"), lambda _: "right"),
        (Column("value", "percent\n95 %", ""), value_cell),
        (Column("count", "lines", "lines"), n_cell),
        (Column("count", "images", "images"), clusters_cell),
        (Column("published", "humans\n2.3", "humans (2.3)"), lambda one: published_cell(one, published)),
    )
    return build_table(f"{len(reviewed):,} lines", fields, [metric], notes)
