"""`sightline build read`: reads the text in images by OCR."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import (
    add_limit,
    add_output,
    add_workers,
    limited,
    print_by_reason,
    workers,
)
from sightline.cli.options import add_store
from sightline.errors import UserError
from sightline.output import print_line, print_note

if TYPE_CHECKING:
    from sightline.builders.checked_images import CheckedImages
    from sightline.engine.ocr_cache import OcrResult

SUMMARY = "read the text in images by OCR, word by word with boxes (ConTextual, section 3.1)"

EXAMPLE = """examples:
  sightline build read data/contextual --out read.jsonl
  sightline build read sign.jpg menu.png --text layout
  sightline build read data/iibench --out read.jsonl --processes 2 --store iibench.db
  sightline build read photos --out read.jsonl --on ray:10.0.0.1:6379

OCR text is cached in the store: a second call uses the cache, and so does `sightline run --augment` with that
store. Copies of an image are read once.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build read`."""
    parser.epilog = EXAMPLE
    group = parser.add_argument_group("images")
    add = group.add_argument
    add(
        "data",
        metavar="DATA",
        nargs="+",
        help="image files, data folders of CODIS, ConTextual or II-Bench, any folders of images, or "
        "groups files",
    )
    add("--out", metavar="FILE", help="JSON lines of image_id, digest, reader, words (text, box, confidence)")
    add(
        "--text",
        choices=("ocr", "layout"),
        help="print the text of each image: in reading order (ocr), or with layout",
    )
    add_limit(group, "images")
    add_output(group, force="replace FILE")
    execution = parser.add_argument_group("execution")
    add_workers(execution)
    add_store(execution)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Read, write and print; returns 1 if an image could not be read."""
    from sightline.builders.built_folder import everything_dropped
    from sightline.builders.checked_images import check_images
    from sightline.builders.read import images_at, read_all, write_ocr_texts
    from sightline.engine.store import Store
    from sightline.formats.files import refuse_overwriting
    from sightline.images import BadImage
    from sightline.models.rapid_ocr import RapidOcr

    if not options.out and not options.text:
        raise UserError("neither --out nor --text is given", expected="--out FILE, --text layout, or both")
    out = Path(options.out) if options.out else None
    data = [Path(path) for path in options.data]
    if out is not None:
        refuse_overwriting(out, options.force, read=data)
    execution, threads = workers(options)
    reader = RapidOcr(threads)
    images = limited(list(images_at(data).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    if not gallery.files:
        raise everything_dropped(gallery.broken, "images")
    store = Store.open(options.store)
    try:
        texts = read_all(gallery, reader, store, execution)
    finally:
        store.close()
    if out is not None:
        write_ocr_texts(texts, gallery, reader, out)
    if options.text:
        _print_texts(texts, options.text)
    unread = {
        name: str(words).removeprefix(f"{gallery.files[name].path}: ")
        for name, words in texts.items()
        if isinstance(words, BadImage)
    }
    return _print_result(gallery, {**gallery.broken, **unread}, out)


def _print_texts(texts: Mapping[str, OcrResult], form: str) -> None:
    from sightline.cli.pipe import output_errors
    from sightline.images import BadImage
    from sightline.models.layout import layout_text, plain_text

    to_text = layout_text if form == "layout" else plain_text
    with output_errors():
        for name, words in texts.items():
            if not isinstance(words, BadImage):
                for line in (f"== {name}", *to_text(words).split("\n"), ""):
                    print_line(line)


def _print_result(gallery: CheckedImages, unread: Mapping[str, str], out: Path | None) -> int:
    """Print on standard error how many images were read, and the reasons for the others."""
    images = len(gallery.files) + len(gallery.broken)
    file = f"{out}: " if out is not None else ""
    print_note(f"{file}{images - len(unread):,} of {images:,} images read")
    print_by_reason(unread)
    return 1 if unread else 0
