"""`sightline build annotate`: a form for annotators, and II-Bench's JSON of what they filled in."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import tell_by_reason
from sightline.cli.printing import print_json
from sightline.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sightline.build.annotate import Annotated
    from sightline.build.form import Line
    from sightline.build.gallery import Gallery
    from sightline.report.grid import Table

SUMMARY = "a form for people who annotate pictures, checked and written as a data folder (II-Bench)"

EXAMPLE = """examples:
  sightline build annotate candidates --write form.csv
  sightline build annotate candidates --people anna.csv --people ben.csv
  sightline build annotate candidates --people anna.csv --people ben.csv --write open.csv
  sightline build annotate candidates --people anna.csv --people ben.csv --out drafted
  sightline build verify drafted/questions.csv --people five.csv --accept 4/5 --out reviewed
  sightline build annotate reviewed --people reviewed/questions.csv --out data/mine
  sightline run iibench --data data/mine --model openai/gpt-4o

The form has a line a picture, and in it domain, emotion, image_type, difficulty, rhetoric (image_type and
rhetoric may have several values, commas between them), explanation, question, options A to F, answer (a
letter), by (a name). For a second and a third question a line is copied. Lines left empty are no annotation;
nor are those that were filled in from the start and are left as they were, without a name in by.
--people checks every line and tells how far people agree; a picture that several annotated gets the labels
that more than half of them give it, and the texts of the first list that has it. DIR receives SPLIT.json in
II-Bench's layout, questions.csv, which is the same for `build verify`, the pictures, and annotation.json,
with what everyone said.
"""

SHOWN = 5
"""Pictures that a note names."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build annotate`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        help="folder of pictures; with SPLIT.json of II-Bench, its records are filled in",
    )
    add("--write", metavar="FORM.csv", help="write the form; beside --people, of the pictures still open")
    add(
        "--people",
        action="append",
        default=[],
        metavar="FORM.csv",
        help="what people filled in; may repeat",
    )
    add("--out", metavar="DIR", help="folder for SPLIT.json, questions.csv, images/ and annotation.json")
    add("--split", choices=("test", "dev"), default="test", help="name of the JSON file (default test)")
    add("--seed", type=int, default=0, metavar="N", help="seed of the intervals (default 0)")
    add("--json", action="store_true", help="print annotation.json instead of the table")
    add("--force", action="store_true", help="replace FORM.csv, or what was built of other pictures")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Draw the form, or check what people filled in, tell their agreement, write; the exit status."""
    from sightline.build.annotate import annotated, build_of, still_open, write
    from sightline.build.folder import refuse_other_contents, refuse_out_among
    from sightline.build.form import cells_in, read_forms, write_form
    from sightline.build.gallery import look_at
    from sightline.formats.files import refuse_overwriting
    from sightline.types import Picture

    if not options.write and not options.people:
        raise UserError("nothing is to be done", expected="--write FORM.csv, or --people FORM.csv")
    if options.out and not options.people:
        raise UserError("--out is for what people annotated", expected="--people FORM.csv beside it")
    folder, lists = Path(options.data), [Path(file) for file in options.people]
    if options.write:
        read = [folder / f"{options.split}.json", *lists]
        refuse_overwriting(Path(options.write), options.force, "--write", read=read)
    if options.out:
        refuse_out_among(Path(options.out), [folder, *lists])
    form = cells_in(folder, options.split)
    gallery = look_at({name: Picture(str(folder / name), str(folder)) for name in form})
    found: list[Annotated] = []
    if lists:
        lines = read_forms(lists)
        _refuse_faults(lines, gallery)
        found = annotated(lines)
    if options.out:
        out = Path(options.out)
        refuse_other_contents(out, build_of(gallery, options.split), force=options.force)
        manifest = write(found, gallery, options.split, out, seed=options.seed, force=options.force)
        print(
            f"{out / options.split}.json: {manifest.probes:,} questions about {manifest.groups:,} pictures",
            file=sys.stderr,
        )
    if options.write:
        left = still_open({name: form[name] for name in gallery.files}, found)
        write_form(Path(options.write), folder, left)
        print(f"{options.write}: {len(left):,} pictures for annotators", file=sys.stderr)
    if gallery.broken:
        print(f"pictures that cannot be shown: {len(gallery.broken):,}", file=sys.stderr)
        tell_by_reason(gallery.broken)
    if lists:
        _tell(found, gallery, options)
    return 0


def _refuse_faults(lines: Sequence[Line], gallery: Gallery) -> None:
    """Raise UserError where a line has a fault, or there is none; all faults but the last are printed."""
    from sightline.build.form import faults

    if not lines:
        expected = "--people FORM.csv with annotations; a line left as it was written needs a name in by"
        raise UserError("nobody has filled anything in", expected=expected)
    found = faults(lines, gallery.files)
    for fault in found[:-1]:
        print(fault, file=sys.stderr)
    if found:
        raise found[-1]


def _tell(found: Sequence[Annotated], gallery: Gallery, options: argparse.Namespace) -> None:
    """Print how far people agree, or all that they said as JSON."""
    if options.json:
        from sightline.build.annotate import report

        print_json(report(found, len(gallery.files), seed=options.seed))
        return
    from sightline.report.terminal import show

    show([_table(found, gallery, options.seed)])


def _unused(found: Sequence[Annotated]) -> list[str]:
    """Whose explanations and questions are not used, as a list before theirs has the picture too."""
    differ = [f"{one.picture} by {', '.join(one.unused)}" for one in found if one.unused]
    if not differ:
        return []
    more = [f"and {len(differ) - SHOWN:,} more"] if len(differ) > SHOWN else []
    return [
        f"texts not used, for an earlier list has others, of {len(differ):,} pictures: "
        + "; ".join([*differ[:SHOWN], *more])
    ]


def _table(found: Sequence[Annotated], gallery: Gallery, seed: int) -> Table:
    from sightline.build.annotate import agreement
    from sightline.report.grid import Column, clusters_cell, n_cell, table, value_cell

    values = agreement(found, seed=seed)
    rows = list(zip(values[::2], values[1::2], strict=True))
    people = Counter(person for one in found for person in one.by_person)
    opened = [one for one in found if one.open]
    labels = Counter(label for one in opened for label in one.open).items()
    which = ", ".join(f"{label} of {count:,}" for label, count in labels)
    notes = [
        f"annotated {len(found):,} of {len(gallery.files):,} pictures: "
        + ", ".join(f"{count:,} by {person}" for person, count in people.items()),
        *([f"open: {len(opened):,}, for want of what more than half say: {which}"] if opened else []),
        *_unused(found),
        *dict.fromkeys(one.reason for row in rows for one in row if one.reason),
    ]
    fields = (
        (Column("text", "label", "label"), lambda row: row[0].subset.partition("=")[2]),
        (Column("value", "agree %\n95 %", "agreement"), lambda row: value_cell(row[0])),
        (Column("value", "alpha\n95 %", "alpha"), lambda row: value_cell(row[1])),
        (Column("count", "pairs", "pairs"), lambda row: n_cell(row[0])),
        (Column("count", "pictures", "pictures"), lambda row: clusters_cell(row[0])),
    )
    return table("How far annotators agree", fields, rows, notes)
