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

    from sightline.builders.annotate import AnnotatedImage
    from sightline.builders.annotation_form import FormLine
    from sightline.builders.image_index import CheckedImages
    from sightline.report.report_table import ReportTable

SUMMARY = "a form for people who annotate images, checked and written as a data folder (II-Bench)"

EXAMPLE = """examples:
  sightline build annotate candidates --write form.csv
  sightline build annotate candidates --human anna.csv --human ben.csv
  sightline build annotate candidates --human anna.csv --human ben.csv --write open.csv
  sightline build annotate candidates --human anna.csv --human ben.csv --out drafted
  sightline build verify drafted/questions.csv --human five.csv --accept 4/5 --out reviewed
  sightline build annotate reviewed --human reviewed/questions.csv --out data/mine
  sightline run iibench --data data/mine --model openai/gpt-4o

The form has a line an image, and in it domain, emotion, image_type, difficulty, rhetoric (image_type and
rhetoric may have several values, commas between them), explanation, question, options A to F, answer (a
letter), by (a name). For a second and a third question a line is copied. Lines left empty are no annotation;
nor are those that were filled in from the start and are left as they were, without a name in by.
--human checks every line and tells how far people agree; an image that several annotated gets the labels
that more than half of them give it, and the texts of the first list that has it. DIR receives SPLIT.json in
II-Bench's layout, questions.csv, which is the same for `build verify`, the images, and annotation.json,
with what everyone said.
"""

SHOWN = 5
"""Images that a note names."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build annotate`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        help="folder of images; with SPLIT.json of II-Bench, its records are filled in",
    )
    add("--write", metavar="FORM.csv", help="write the form; beside --human, of the images still open")
    add(
        "--human",
        action="append",
        default=[],
        metavar="FORM.csv",
        help="what people filled in; may repeat",
    )
    add("--out", metavar="DIR", help="folder for SPLIT.json, questions.csv, images/ and annotation.json")
    add("--split", choices=("test", "dev"), default="test", help="name of the JSON file (default test)")
    add("--seed", type=int, default=0, metavar="N", help="seed of the intervals (default 0)")
    add("--json", action="store_true", help="print annotation.json instead of the table")
    add("--force", action="store_true", help="replace FORM.csv, or what was built of other images")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Draw the form, or check what people filled in, tell their agreement, write; the exit status."""
    from sightline.builders.annotate import annotated, build_of, still_open, write
    from sightline.builders.annotation_form import cells_in, read_forms, write_form
    from sightline.builders.built_folder import refuse_other_contents, refuse_out_among
    from sightline.builders.image_index import check_images
    from sightline.formats.files import refuse_overwriting
    from sightline.types import ImageRef

    if not options.write and not options.human:
        raise UserError("nothing is to be done", expected="--write FORM.csv, or --human FORM.csv")
    if options.out and not options.human:
        raise UserError("--out is for what people annotated", expected="--human FORM.csv beside it")
    folder, lists = Path(options.data), [Path(file) for file in options.human]
    if options.write:
        read = [folder / f"{options.split}.json", *lists]
        refuse_overwriting(Path(options.write), options.force, "--write", read=read)
    if options.out:
        refuse_out_among(Path(options.out), [folder, *lists])
    form = cells_in(folder, options.split)
    gallery = check_images({name: ImageRef(str(folder / name), str(folder)) for name in form})
    found: list[AnnotatedImage] = []
    if lists:
        lines = read_forms(lists)
        _refuse_faults(lines, gallery)
        found = annotated(lines)
    if options.out:
        out = Path(options.out)
        refuse_other_contents(out, build_of(gallery, options.split), force=options.force)
        manifest = write(found, gallery, options.split, out, seed=options.seed, force=options.force)
        print(
            f"{out / options.split}.json: {manifest.probes:,} questions about {manifest.groups:,} images",
            file=sys.stderr,
        )
    if options.write:
        left = still_open({name: form[name] for name in gallery.files}, found)
        write_form(Path(options.write), folder, left)
        print(f"{options.write}: {len(left):,} images for annotators", file=sys.stderr)
    if gallery.broken:
        print(f"images that cannot be shown: {len(gallery.broken):,}", file=sys.stderr)
        tell_by_reason(gallery.broken)
    if lists:
        _tell(found, gallery, options)
    return 0


def _refuse_faults(lines: Sequence[FormLine], gallery: CheckedImages) -> None:
    """Raise UserError where a line has a fault, or there is none; all faults but the last are printed."""
    from sightline.builders.annotation_form import faults

    if not lines:
        expected = "--human FORM.csv with annotations; a line left as it was written needs a name in by"
        raise UserError("nobody has filled anything in", expected=expected)
    found = faults(lines, gallery.files)
    for fault in found[:-1]:
        print(fault, file=sys.stderr)
    if found:
        raise found[-1]


def _tell(found: Sequence[AnnotatedImage], gallery: CheckedImages, options: argparse.Namespace) -> None:
    """Print how far people agree, or all that they said as JSON."""
    if options.json:
        from sightline.builders.annotate import report

        print_json(report(found, len(gallery.files), seed=options.seed))
        return
    from sightline.report.terminal import show

    show([_table(found, gallery, options.seed)])


def _unused(found: Sequence[AnnotatedImage]) -> list[str]:
    """Whose explanations and questions are not used, as a list before theirs has the image too."""
    differ = [f"{one.image} by {', '.join(one.unused)}" for one in found if one.unused]
    if not differ:
        return []
    more = [f"and {len(differ) - SHOWN:,} more"] if len(differ) > SHOWN else []
    return [
        f"texts not used, for an earlier list has others, of {len(differ):,} images: "
        + "; ".join([*differ[:SHOWN], *more])
    ]


def _table(found: Sequence[AnnotatedImage], gallery: CheckedImages, seed: int) -> ReportTable:
    from sightline.builders.annotate import agreement
    from sightline.report.report_table import Column, build_table, clusters_cell, n_cell, value_cell

    values = agreement(found, seed=seed)
    rows = list(zip(values[::2], values[1::2], strict=True))
    humans = Counter(human for one in found for human in one.by_human)
    opened = [one for one in found if one.open]
    labels = Counter(label for one in opened for label in one.open).items()
    which = ", ".join(f"{label} of {count:,}" for label, count in labels)
    notes = [
        f"annotated {len(found):,} of {len(gallery.files):,} images: "
        + ", ".join(f"{count:,} by {human}" for human, count in humans.items()),
        *([f"open: {len(opened):,}, for want of what more than half say: {which}"] if opened else []),
        *_unused(found),
        *dict.fromkeys(one.reason for row in rows for one in row if one.reason),
    ]
    fields = (
        (Column("text", "label", "label"), lambda row: row[0].subset.partition("=")[2]),
        (Column("value", "agree %\n95 %", "agreement"), lambda row: value_cell(row[0])),
        (Column("value", "alpha\n95 %", "alpha"), lambda row: value_cell(row[1])),
        (Column("count", "pairs", "pairs"), lambda row: n_cell(row[0])),
        (Column("count", "images", "images"), lambda row: clusters_cell(row[0])),
    )
    return build_table("How far annotators agree", fields, rows, notes)
