"""`sightline build annotate`: an annotation form, and II-Bench's JSON from the filled-in forms."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import print_by_reason
from sightline.cli.build_review_options import add_review_lists, checked_lists, refuse_no_review
from sightline.cli.printing import print_json
from sightline.errors import UserError, some_of
from sightline.output import print_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sightline.builders.annotate import AnnotatedImage
    from sightline.builders.annotation_form import FormLine
    from sightline.builders.checked_images import CheckedImages
    from sightline.reporting.report_table import ReportTable

SUMMARY = "write an annotation form, check filled-in forms, create a data folder from them (II-Bench)"

EXAMPLE = """examples:
  sightline build annotate candidates --write form.csv
  sightline build annotate candidates --human anna.csv --human ben.csv
  sightline build annotate candidates --human anna.csv --human ben.csv --write open.csv
  sightline build annotate candidates --human anna.csv --human ben.csv --out drafted
  sightline build verify drafted/questions.csv --human five.csv --accept 4/5 --out reviewed
  sightline build annotate reviewed --human reviewed/questions.csv --out data/mine
  sightline run iibench --data data/mine --model openai/gpt-4o

The form has one line per image with the columns domain, emotion, image_type, difficulty, rhetoric (image_type
and rhetoric may have several values, separated by commas), explanation, question, options A to F, answer (a
letter) and by (a name). Copy a line for a second or third question. Empty lines are ignored, and lines that
are unchanged and have no name in by. --human checks every line and prints the agreement of the annotators. An
image with several annotators gets the labels that more than half of them give, and the texts of the first
form that has it. DIR receives SPLIT.json in II-Bench's layout, questions.csv with the same questions for
`build verify`, the images, and annotation.json with all annotations.
"""

PRINTED_IMAGES = 5
"""Images that a note names."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build annotate`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        help="folder of images; if it holds II-Bench's SPLIT.json, the form contains its records",
    )
    add_review_lists(
        parser,
        write="write the form; with --human, only for images that are still open",
        human="filled-in form",
        file="FORM.csv",
    )
    add("--out", metavar="DIR", help="folder for SPLIT.json, questions.csv, images/ and annotation.json")
    add(
        "--split",
        choices=("test", "dev"),
        default="test",
        help="name of the split and its JSON file (default: test)",
    )
    add("--json", action="store_true", help="print annotation.json instead of the table")
    add("--force", action="store_true", help="replace FORM.csv, or a folder with other images")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write the form, or check filled-in forms, print their agreement, write the data; the exit status."""
    from sightline.builders.annotate import group_by_image, identify_build, open_form, write_annotations
    from sightline.builders.annotation_form import initial_cells, read_forms, write_form
    from sightline.builders.built_folder import refuse_other_contents
    from sightline.builders.checked_images import check_images
    from sightline.types import ImageRef

    refuse_no_review(options, "FORM.csv")
    folder = Path(options.data)
    lists = checked_lists(options, [folder, folder / f"{options.split}.json"])
    form = initial_cells(folder, options.split)
    gallery = check_images({name: ImageRef(str(folder / name), str(folder)) for name in form})
    images: list[AnnotatedImage] = []
    if lists:
        lines = read_forms(lists)
        _refuse_faults(lines, gallery)
        images = group_by_image(lines)
    if options.out:
        out = Path(options.out)
        refuse_other_contents(out, identify_build(gallery, options.split), force=options.force)
        manifest = write_annotations(images, gallery, options.split, out, force=options.force)
        counts = f"{manifest.probes:,} questions about {manifest.groups:,} images"
        print_note(f"{out / options.split}.json: {counts}")
    if options.write:
        remaining = open_form({name: form[name] for name in gallery.files}, images)
        write_form(Path(options.write), folder, remaining)
        print_note(f"{options.write}: {len(remaining):,} images for annotators")
    if gallery.broken:
        print_note(f"broken images: {len(gallery.broken):,}")
        print_by_reason(gallery.broken)
    if lists:
        _print(images, gallery, options)
    return 0


def _refuse_faults(lines: Sequence[FormLine], gallery: CheckedImages) -> None:
    """Refuse lines with faults; all faults but the last are printed, the last one is raised."""
    from sightline.builders.annotation_form import find_faults

    if not lines:
        expected = "--human FORM.csv with annotations; an unchanged line needs a name in by"
        raise UserError("no line is filled in", expected=expected)
    faults = find_faults(lines, gallery.files)
    for fault in faults[:-1]:
        print_note(str(fault))
    if faults:
        raise faults[-1]


def _print(images: Sequence[AnnotatedImage], gallery: CheckedImages, options: argparse.Namespace) -> None:
    """Print the agreement, or annotation.json."""
    if options.json:
        from sightline.builders.annotate import annotation_report

        print_json(annotation_report(images, len(gallery.files)))
        return
    from sightline.reporting.terminal import show

    show([_table(images, gallery)])


def _unused(images: Sequence[AnnotatedImage]) -> list[str]:
    """A note on texts that are not used because an earlier form has the image too."""
    differ = [f"{one.image} by {', '.join(one.unused)}" for one in images if one.unused]
    if not differ:
        return []
    return [
        f"texts of {len(differ):,} images are not used, because an earlier form has other texts: "
        + some_of(differ, PRINTED_IMAGES, separator="; ")
    ]


def _table(images: Sequence[AnnotatedImage], gallery: CheckedImages) -> ReportTable:
    from sightline.builders.annotate import agreement
    from sightline.reporting.report_table import Column, build_table, clusters_cell, n_cell, value_cell

    values = agreement(images)
    rows = list(zip(values[::2], values[1::2], strict=True))
    humans = Counter(name for one in images for name in one.by_annotator)
    undecided = [one for one in images if one.open]
    labels = Counter(label for one in undecided for label in one.open).items()
    which = ", ".join(f"{label} of {count:,}" for label, count in labels)
    notes = [
        f"annotated {len(images):,} of {len(gallery.files):,} images: "
        + ", ".join(f"{count:,} by {name}" for name, count in humans.items()),
        *([f"open: {len(undecided):,}, no majority for {which}"] if undecided else []),
        *_unused(images),
        *dict.fromkeys(one.reason for row in rows for one in row if one.reason),
    ]
    fields = (
        (Column("text", "label", "label"), lambda row: row[0].subset.partition("=")[2]),
        (Column("value", "agree %\n95 %", "agreement"), lambda row: value_cell(row[0])),
        (Column("value", "alpha\n95 %", "alpha"), lambda row: value_cell(row[1])),
        (Column("count", "pairs", "pairs"), lambda row: n_cell(row[0])),
        (Column("count", "images", "images"), lambda row: clusters_cell(row[0])),
    )
    return build_table("Agreement of the annotators", fields, rows, notes)
