"""`sightline build curate`: selects raw images worth annotating, and records why others are dropped."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import (
    add_limit,
    add_output,
    add_workers,
    limited,
    preview_path,
    print_missing_characters,
    workers,
)
from sightline.cli.options import add_store
from sightline.cli.printing import print_json
from sightline.output import print_note

if TYPE_CHECKING:
    from sightline.builders.curate import CurationOptions
    from sightline.builders.curation_funnel import Funnel
    from sightline.models.ocr import Reader
    from sightline.reporting.report_table import ReportTable

SUMMARY = "select raw images: drop near-duplicates, filter by amount of text (II-Bench, ConTextual)"

EXAMPLE = """examples:
  sightline build curate raw --out candidates --preview near-duplicates.png
  sightline build curate raw --max-text 0.3 --write list.csv
  sightline build curate raw --max-text 0.3 --human list.csv --out candidates
  sightline build curate stvqa estvqa --top 500 --out candidates

The steps drop, in this order: broken files; exact copies; near-duplicates; images that text covers too much
(--max-text); all but the images with the most words (--top); images that humans drop (--human). --write lists
the remaining images for reviewers, who write 'keep' or 'drop' into the column mark. Without --out, --write
and --preview only the counts are printed. Hashes and OCR text are cached in the store.
"""
REASONS = {
    "broken": "is broken",
    "copy": "is a copy of another file",
    "undecoded": "cannot be decoded",
    "near_duplicate": "is a near-duplicate",
    "unreadable": "OCR fails on it",
    "text": "text covers too much of the area",
    "words": "is not among the --top N by number of words",
    "human": "humans drop it, or have not decided",
}
"""Step -> why it drops an image."""
PREVIEW_GROUPS = 8
"""Groups of near-duplicates on the sheet."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build curate`."""
    parser.epilog = EXAMPLE
    images = parser.add_argument_group("images")
    help_data = "folders of images, data folders, or image files"
    images.add_argument("data", metavar="DATA", nargs="+", help=help_data)
    add_limit(images, "images")
    steps = parser.add_argument_group("steps")
    add = steps.add_argument
    bits = "near-duplicates differ in at most N of 256 hash bits (default: 48)"
    add("--distance", type=int, metavar="N", help=bits)
    share = "drop images in which text covers more than this share of the area (0 to 1, for example 0.3)"
    add("--max-text", type=float, metavar="SHARE", help=share)
    add("--top", type=int, metavar="N", help="keep the N images with the most words (ConTextual: 500)")
    add("--write", metavar="LIST.csv", help="write a list of the remaining images for reviewers")
    marks = "list of --write with marks; keep images that the majority keeps; may repeat"
    add("--human", action="append", default=[], metavar="LIST.csv", help=marks)
    results = parser.add_argument_group("results")
    add = results.add_argument
    add("--out", metavar="DIR", help="folder for images/, curation.json and manifest.json")
    add("--json", action="store_true", help="print curation.json instead of the counts")
    add_output(
        results,
        preview="draw near-duplicates on one sheet, doubtful ones first",
        force="replace a folder with other settings, and LIST.csv",
    )
    execution = parser.add_argument_group("execution")
    add_workers(execution)
    add_store(execution)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Take the images through the steps, write the results, print the counts; the exit status."""
    from msgspec.structs import replace

    from sightline.builders.checked_images import check_images
    from sightline.builders.curate import KEEP, CurationOptions, curate, write_curated
    from sightline.builders.near_duplicates import import_imagehash
    from sightline.builders.read import images_at
    from sightline.builders.review_lists import read_marks
    from sightline.engine.store import Store

    selection = CurationOptions(max_text=options.max_text, top=options.top)
    if options.distance is not None:
        selection = replace(selection, distance=options.distance)
    sheet = preview_path(options)
    data = [Path(path) for path in options.data]
    lists = _checked_lists(options, data)
    # A missing library is reported before any image is read.
    import_imagehash()
    execution, threads = workers(options)
    reader = _reader(selection, threads)
    marks = read_marks(lists, KEEP) if lists else None
    images = limited(list(images_at(data).items()), options)
    gallery = check_images(dict(images), show_progress=execution.show_progress)
    store = Store.open(options.store)
    try:
        funnel = curate(gallery, selection, store, reader=reader, marks=marks, execution=execution)
    finally:
        store.close()
    if options.out is not None:
        write_curated(funnel, Path(options.out), force=options.force)
    if options.write is not None:
        _write_list(funnel, Path(options.write))
    if sheet is not None:
        _draw(funnel, sheet)
    _print(funnel, options)
    return 0


def _checked_lists(options: argparse.Namespace, data: Sequence[Path]) -> list[Path]:
    """The lists of --human; UserError if --write or --out would replace an input, or cannot be written."""
    from sightline.builders.built_folder import refuse_out_inside_inputs
    from sightline.formats.files import refuse_overwriting, refuse_unwritable

    lists = [Path(file) for file in options.human]
    read = [*data, *lists]
    if options.write:
        refuse_overwriting(Path(options.write), options.force, "--write", read=read)
    if options.out:
        refuse_out_inside_inputs(Path(options.out), read)
        refuse_unwritable(Path(options.out))
    return lists


def _reader(selection: CurationOptions, threads: int) -> Reader | None:
    if not selection.needs_ocr:
        return None
    from sightline.models.rapid_ocr import RapidOcr

    return RapidOcr(threads)


def _write_list(funnel: Funnel, path: Path) -> None:
    from sightline.builders.curation_funnel import review_columns
    from sightline.builders.review_lists import write_list

    items = review_columns(funnel)
    write_list(path, items)
    print_note(f"{path}: {len(items):,} images for reviewers; mark: 'keep' or 'drop', by: a name")


def _draw(funnel: Funnel, sheet: Path) -> None:
    from sightline.builders.curation_funnel import near_duplicate_lines
    from sightline.builders.preview import draw_lines

    lines = near_duplicate_lines(funnel, PREVIEW_GROUPS)
    if not lines:
        print_note("there are no near-duplicates, so no preview is written")
        return
    print_missing_characters(draw_lines(lines, Path(), sheet, rows=PREVIEW_GROUPS))
    print_note(f"preview: {sheet}")


def _print(funnel: Funnel, options: argparse.Namespace) -> None:
    """Print the counts of the steps, or curation.json."""
    if options.json:
        from sightline.builders.curation_funnel import curation_report

        print_json(curation_report(funnel))
        return
    from sightline.reporting.terminal import show

    show([_table(funnel, Path(options.out) if options.out else None)])


def _table(funnel: Funnel, out: Path | None) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable

    columns = (
        Column("text", "reason", "step"),
        Column("count", "came", "came"),
        Column("count", "dropped", "dropped"),
        Column("count", "left", "left"),
    )
    rows = tuple((REASONS[step.step], step.came, step.dropped, step.left) for step in funnel.steps)
    notes = []
    if out is not None:
        notes = [
            f"{len(funnel.kept):,} images in {out / 'images'}; the reasons for all in {out / 'curation.json'}"
        ]
    return ReportTable(f"{len(funnel.statuses):,} images", columns, rows, tuple(notes))
