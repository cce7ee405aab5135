"""`sightline build curate`: of raw images those worth annotating, with what became of the others."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import add_reading, limited, preview_path, shared_out
from sightline.cli.options import add_quiet, add_store
from sightline.cli.printing import print_json

if TYPE_CHECKING:
    from sightline.builders.curate import CurationOptions
    from sightline.builders.curation_funnel import Funnel
    from sightline.models.ocr import Reader
    from sightline.report.report_table import ReportTable

SUMMARY = "raw images without copies, and by how much is written in them (II-Bench, ConTextual)"

EXAMPLE = """examples:
  sightline build curate raw --out candidates --preview alike.png
  sightline build curate raw --max-text 0.3 --write list.csv
  sightline build curate raw --max-text 0.3 --human list.csv --out candidates
  sightline build curate stvqa estvqa --top 500 --out candidates

Steps, in order: files that are no images; exact copies; images that look alike; those of which text
covers too much (--max-text); all but those with the most words (--top); what people drop (--human). --write
lists what is left for people, who put 'keep' or 'drop' into the column mark. Without --out, --write and
--preview the funnel is only told. What was computed and read is remembered in the store.
"""
ALIKE = 8
"""Groups of images that look alike on the sheet."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build curate`."""
    parser.epilog = EXAMPLE
    what = parser.add_argument_group("what is curated")
    add = what.add_argument
    add("data", metavar="DATA", nargs="+", help="folders of images, data folders, or image files")
    add("--limit", type=int, metavar="N", help="only the first N images")
    steps = parser.add_argument_group("steps")
    add = steps.add_argument
    bits = "two images look alike whose hashes differ in at most N of 256 bits (default 48)"
    add("--distance", type=int, metavar="N", help=bits)
    add("--max-text", type=float, metavar="SHARE", help="drop those of which text covers more, 0-1, as 0.3")
    add("--top", type=int, metavar="N", help="keep the N with the most words (ConTextual: 500)")
    add(
        "--human",
        action="append",
        default=[],
        metavar="LIST.csv",
        help="keep what more people keep than drop, by lists of --write that they filled in; may repeat",
    )
    results = parser.add_argument_group("results")
    add = results.add_argument
    add("--out", metavar="DIR", help="folder for images/, curation.json and manifest.json")
    add("--write", metavar="LIST.csv", help="list what is left for people, write it there")
    add(
        "--preview",
        metavar="FILE.png",
        help="draw images that look alike on one sheet, doubtful ones first",
    )
    add("--json", action="store_true", help="print curation.json instead of the funnel")
    add("--force", action="store_true", help="replace what was built there with other settings, and LIST.csv")
    add_quiet(results)
    working = parser.add_argument_group("working")
    add_reading(working)
    add_store(working, plugins=False)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Take the images through the steps, write what is asked for, tell the funnel; the exit status."""
    from msgspec.structs import replace

    from sightline.builders.built_folder import refuse_out_among
    from sightline.builders.curate import KEEP, CurationOptions, curate, write
    from sightline.builders.image_index import check_images
    from sightline.builders.near_duplicates import image_hash
    from sightline.builders.read import images_at
    from sightline.builders.review_lists import read_marks
    from sightline.engine.store import Store
    from sightline.formats.files import refuse_overwriting, refuse_unwritable

    how = CurationOptions(max_text=options.max_text, top=options.top)
    if options.distance is not None:
        how = replace(how, distance=options.distance)
    sheet = preview_path(options)
    data, lists = ([Path(path) for path in paths] for paths in (options.data, options.human))
    if options.write is not None:
        refuse_overwriting(Path(options.write), options.force, "--write", read=[*data, *lists])
    if options.out is not None:
        refuse_out_among(Path(options.out), [*data, *lists])
        refuse_unwritable(Path(options.out))
    # Told before any image is looked at.
    image_hash()
    processes, threads = shared_out(options)
    reader = _reader(how, threads)
    marks = read_marks(lists, KEEP) if lists else None
    images = limited(list(images_at(data).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    store = Store.open(options.store)
    try:
        funnel = curate(
            gallery,
            how,
            store,
            reader=reader,
            marks=marks,
            processes=processes,
            show_progress=not options.quiet,
        )
    finally:
        store.close()
    if options.out is not None:
        write(funnel, Path(options.out), force=options.force)
    if options.write is not None:
        _write_list(funnel, Path(options.write))
    if sheet is not None:
        _draw(funnel, sheet)
    _tell(funnel, options)
    return 0


def _reader(how: CurationOptions, threads: int) -> Reader | None:
    if not how.reads:
        return None
    from sightline.models.rapid_ocr import RapidOcr

    return RapidOcr(threads)


def _write_list(funnel: Funnel, path: Path) -> None:
    from sightline.builders.curation_funnel import listed
    from sightline.builders.review_lists import write_list

    shown = listed(funnel)
    write_list(path, shown)
    print(f"{path}: {len(shown):,} images for people; mark: 'keep' or 'drop', by: a name", file=sys.stderr)


def _draw(funnel: Funnel, sheet: Path) -> None:
    from sightline.builders.curation_funnel import alike_lines
    from sightline.builders.preview import draw_lines

    lines = alike_lines(funnel, ALIKE)
    if not lines:
        print("no two images look alike: no sheet is drawn", file=sys.stderr)
        return
    draw_lines(lines, Path(), sheet, rows=ALIKE)
    print(f"preview: {sheet}", file=sys.stderr)


def _tell(funnel: Funnel, options: argparse.Namespace) -> None:
    """Print the funnel, or all that became of the images as JSON."""
    if options.json:
        from sightline.builders.curation_funnel import report

        print_json(report(funnel))
        return
    from sightline.report.terminal import show

    show([_table(funnel, Path(options.out) if options.out else None)])


def _table(funnel: Funnel, out: Path | None) -> ReportTable:
    from sightline.report.report_table import Column, ReportTable

    why = {
        "broken": "no image that can be shown",
        "copy": "the same file as another",
        "undecoded": "cannot be decoded",
        "alike": "looks like another",
        "unreadable": "cannot be read",
        "text": "text covers too much of it",
        "words": "others have more words",
        "human": "people drop it, or have not decided",
    }
    columns = (
        Column("text", "dropped because it", "step"),
        Column("count", "came", "came"),
        Column("count", "dropped", "dropped"),
        Column("count", "left", "left"),
    )
    rows = tuple((why[step.step], step.came, step.dropped, step.left) for step in funnel.steps)
    notes = []
    if out is not None:
        notes = [f"{len(funnel.kept):,} images in {out / 'images'}; each of all in {out / 'curation.json'}"]
    return ReportTable(f"{len(funnel.statuses):,} images", columns, rows, tuple(notes))
