"""`sightline build verify`: what people say of each line of a table; what they find wrong is dropped."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import tell_by_reason
from sightline.cli.printing import print_json
from sightline.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sightline.builders.review_lists import AcceptanceRule
    from sightline.builders.verify import ReviewedLine, TableLine
    from sightline.report.report_table import ReportTable

SUMMARY = "people mark each line of a table right or wrong; what is wrong is dropped (ConTextual, II-Bench)"

EXAMPLE = """examples:
  sightline build verify mine/contextual_val.csv --write list.csv
  sightline build verify mine/contextual_val.csv --human anna.csv --human ben.csv --out verified
  sightline build verify verified/contextual_val.csv --write review.csv
  sightline build verify questions.csv --human five.csv --accept 4/5 --not-by author --out round1
  sightline build verify questions.csv round1/rejected.csv --human five.csv --human again.csv --accept 4/5

--write lists all lines for people, who put 'right' or 'wrong' into the column mark, and their name into by;
--human reads their lists. DIR receives the table with what was accepted, rejected.csv, to be revised, the
images of both that lie beside a TABLE (ConTextual's layout), and verification.json. A line is told again by
its content, so that marks do not outlive a change of it: a rejected line that was revised is reviewed anew.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build verify`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("tables", metavar="TABLE.csv", nargs="+", help="tables with the same columns, as contextual_val.csv")
    add("--write", metavar="LIST.csv", help="list the lines for people, write it there")
    add(
        "--human",
        action="append",
        default=[],
        metavar="LIST.csv",
        help="what people marked, by lists of --write; may repeat",
    )
    add("--accept", metavar="K/N", help="accept what K of N people mark right (default: the majority)")
    add("--not-by", action="append", default=[], metavar="NAME", help="who may not mark; may repeat")
    add("--out", metavar="DIR", help="folder for what was accepted, and for rejected.csv")
    add("--seed", type=int, default=0, metavar="N", help="seed of the interval (default 0)")
    add("--json", action="store_true", help="print verification.json instead of the table")
    add("--force", action="store_true", help="replace LIST.csv, or what was built of other lines")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """List, or read marks, write what was accepted and tell the share of it; the exit status."""
    from sightline.builders.built_folder import refuse_other_contents, refuse_out_among
    from sightline.builders.review_lists import read_marks, rule_of
    from sightline.builders.verify import ACCEPTED, REJECTED, RIGHT, build_of, read_lines, verify, write
    from sightline.formats.files import refuse_overwriting

    if not options.write and not options.human:
        raise UserError("nothing is to be done", expected="--write LIST.csv, or --human LIST.csv")
    if options.out and not options.human:
        raise UserError("--out is for what people accept", expected="--human LIST.csv beside it")
    rule = rule_of(options.accept)
    tables, lists = ([Path(file) for file in files] for files in (options.tables, options.human))
    if options.write:
        refuse_overwriting(Path(options.write), options.force, "--write", read=[*tables, *lists])
    if options.out:
        refuse_out_among(Path(options.out), [*tables, *lists])
    lines = read_lines(tables)
    if options.write:
        _write_list(lines, Path(options.write))
    if not options.human:
        return 0
    marks = read_marks(lists, RIGHT)
    found = verify(lines, marks, rule, not_by=options.not_by)
    if options.out:
        out, name = Path(options.out), tables[0].name
        table = ACCEPTED if name == REJECTED else name
        refuse_other_contents(out, build_of(lines, rule), force=options.force)
        manifest = write(found, rule, table, out, seed=options.seed, force=options.force)
        print(
            f"{out / table}: {manifest.groups:,} lines, {manifest.images:,} images beside it",
            file=sys.stderr,
        )
        if manifest.missing:
            print(f"images missing or broken: {len(manifest.missing):,}", file=sys.stderr)
            tell_by_reason(manifest.missing)
    _tell(found, rule, options)
    return 0


def _write_list(lines: Sequence[TableLine], path: Path) -> None:
    from sightline.builders.review_lists import write_list
    from sightline.builders.verify import listed

    write_list(path, listed(lines))
    print(f"{path}: {len(lines):,} lines for people; mark: 'right' or 'wrong', by: a name", file=sys.stderr)


def _tell(found: Sequence[ReviewedLine], rule: AcceptanceRule, options: argparse.Namespace) -> None:
    if options.json:
        from sightline.builders.verify import report

        print_json(report(found, rule, seed=options.seed))
        return
    from sightline.report.terminal import show

    show([_table(found, rule, options.seed)])


def _table(found: Sequence[ReviewedLine], rule: AcceptanceRule, seed: int) -> ReportTable:
    from sightline.builders.verify import share_right
    from sightline.report.report_table import (
        Column,
        build_table,
        clusters_cell,
        n_cell,
        published_cell,
        value_cell,
    )

    metric = share_right(found, seed=seed)
    published = metric.published[0] if metric.published else None
    verdicts = [one.accepted for one in found]
    notes = [
        f"accepted {verdicts.count(True):,}, rejected {verdicts.count(False):,}, by {rule.text}",
        *([f"not decided: {verdicts.count(None):,}"] if None in verdicts else []),
        *([f"human: {metric.judge}"] if metric.judge else []),
        *([f"right: {metric.reason}"] if metric.reason else []),
        *([f"published: {published.note}"] if published else []),
    ]
    fields = (
        (Column("text", "found", "measure"), lambda _: "right"),
        (Column("value", "percent\n95 %", ""), value_cell),
        (Column("count", "lines", "lines"), n_cell),
        (Column("count", "images", "images"), clusters_cell),
        (Column("published", "people\n2.3", "people (2.3)"), lambda one: published_cell(one, published)),
    )
    return build_table(f"{len(found):,} lines", fields, [metric], notes)
