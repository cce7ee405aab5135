"""`sightline build read`: what is written in images, by OCR."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import add_reading, limited, shared_out, tell_by_reason
from sightline.cli.options import add_quiet, add_store
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.builders.image_index import CheckedImages
    from sightline.engine.ocr_cache import OcrResult

SUMMARY = "what is written in images, and where, by OCR (ConTextual, section 3.1)"

EXAMPLE = """examples:
  sightline build read data/contextual --out read.jsonl
  sightline build read sign.jpg menu.png --text layout
  sightline build read data/iibench --out read.jsonl --processes 2 --store iibench.db

What was read is remembered in the store: a second call reads nothing, and neither does `sightline run
--augment` on that store. An image that lies there under several names is read once.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build read`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument_group("what is read").add_argument
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
        help="print the text of each image: in reading order, or laid out",
    )
    add("--limit", type=int, metavar="N", help="only the first N images")
    add("--force", action="store_true", help="replace FILE where it is there")
    add_quiet(parser)
    working = parser.add_argument_group("working")
    add_reading(working)
    add_store(working, plugins=False)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Read, write and print; 1 where an image could not be read."""
    from sightline.builders.built_folder import nothing_left
    from sightline.builders.image_index import check_images
    from sightline.builders.read import images_at, read_all, write
    from sightline.engine.store import Store
    from sightline.formats.files import refuse_overwriting
    from sightline.images import BadImage
    from sightline.models.rapid_ocr import RapidOcr

    if not options.out and not options.text:
        raise UserError(
            "nothing is to be done with what is read", expected="--out FILE, --text layout, or both"
        )
    out = Path(options.out) if options.out else None
    data = [Path(path) for path in options.data]
    if out is not None:
        refuse_overwriting(out, options.force, read=data)
    processes, threads = shared_out(options)
    reader = RapidOcr(threads)
    images = limited(list(images_at(data).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    if not gallery.files:
        raise nothing_left(gallery.broken, "images")
    store = Store.open(options.store)
    try:
        read = read_all(gallery, reader, store, processes=processes, show_progress=not options.quiet)
    finally:
        store.close()
    if out is not None:
        write(read, gallery, reader, out)
    if options.text:
        _print_texts(read, options.text)
    unread = {
        name: str(words).removeprefix(f"{gallery.files[name].path}: ")
        for name, words in read.items()
        if isinstance(words, BadImage)
    }
    return _tell(gallery, {**gallery.broken, **unread}, out)


def _print_texts(read: Mapping[str, OcrResult], how: str) -> None:
    from sightline.cli.pipe import output_errors
    from sightline.images import BadImage
    from sightline.models.layout import layout_text, plain_text

    told = layout_text if how == "layout" else plain_text
    with output_errors():
        for name, words in read.items():
            if not isinstance(words, BadImage):
                print(f"== {name}\n{told(words)}\n")


def _tell(gallery: CheckedImages, unread: Mapping[str, str], out: Path | None) -> int:
    """Print on standard error how much was read, and which images were not, by the reason."""
    images = len(gallery.files) + len(gallery.broken)
    place = f"{out}: " if out is not None else ""
    print(f"{place}{images - len(unread):,} of {images:,} images read", file=sys.stderr)
    tell_by_reason(unread)
    return 1 if unread else 0
