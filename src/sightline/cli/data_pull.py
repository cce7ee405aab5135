"""`sightline data pull`: download a data set, then the images that its records, or a table, name by URL."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_quiet
from sightline.cli.pipe import output_errors
from sightline.cli.printing import by_reason, print_json
from sightline.errors import UserError, unknown_name
from sightline.output import print_line, print_note

if TYPE_CHECKING:
    from sightline.benchmarks.release import Release
    from sightline.data.image_download import ImageDownload
    from sightline.data.pull import PulledData
    from sightline.reporting.report_table import ReportTable

SUMMARY = (
    "download a data set at its pinned revision and verify its checksums, or the images of a table of URLs"
)

EXAMPLE = """examples:
  sightline data pull codis                              into ./data/codis
  sightline data pull contextual                         the records, then 506 images by their URLs
  sightline data pull styles                             weights for `build restyle`, into ./data/styles
  sightline data pull iibench --to /srv/data --from II-Bench.tar.gz
  sightline data pull photos.csv                         images of your own table, into ./data/photos/images
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `data pull`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "source",
        metavar="DATA_SET|TABLE",
        help="codis, iibench, contextual or styles; or a CSV, TSV, xlsx or JSON Lines file with the column "
        "url, and optionally image: the path below images/ (default: host and path of the URL)",
    )
    add("--to", default="data", metavar="DIR", help="parent folder of the data set (default: data)")
    add(
        "--from",
        dest="origin",
        metavar="URL|PATH",
        help="other source of the repository's .tar.gz at the pinned revision (contextual, styles: or a "
        "folder of the files); its checksum is verified too. For a table: a folder of its images",
    )
    add(
        "--allow-private",
        action="store_true",
        help="also download images from private addresses (this machine and its network), but never from "
        "link-local addresses and metadata services of clouds",
    )
    add("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Download the data set or the images of the table; returns 1 if an image is missing."""
    from sightline.data.releases import releases
    from sightline.data.styles import STYLE_WEIGHTS

    known = {**releases(), STYLE_WEIGHTS.name: STYLE_WEIGHTS}
    if options.source in known:
        return _pull_release(known[options.source], options)
    if Path(options.source).is_file():
        return _pull_table(Path(options.source), options)
    raise unknown_name("data set or table", options.source, known)


def _pull_release(release: Release, options: argparse.Namespace) -> int:
    from sightline.data.pull import pull_with_images

    if options.allow_private and not release.image_urls:
        raise UserError(
            f"--allow-private has no effect: {release.name} has no images by URL",
            expected="no --allow-private",
        )
    pulled = pull_with_images(
        release,
        Path(options.to),
        options.origin,
        allow_private=options.allow_private,
        show_progress=not options.quiet,
    )
    if options.json:
        print_json(pulled)
    else:
        _print_pulled(pulled)
    return 1 if pulled.images and pulled.images.missing else 0


def _pull_table(table: Path, options: argparse.Namespace) -> int:
    from sightline.data.url_table import pull_table

    origin = Path(options.origin) if options.origin is not None else None
    if origin is not None and not origin.is_dir():
        raise UserError("is not a folder", file=origin, expected="--from FOLDER with images of the table")
    pulled = pull_table(
        table,
        Path(options.to),
        origin,
        allow_private=options.allow_private,
        show_progress=not options.quiet,
    )
    if options.json:
        print_json(pulled)
    else:
        with output_errors():
            print_line(f"{pulled.folder}: images of {pulled.table}")
            _print_images(pulled.images, pulled.folder)
        _print_unusable(pulled.images)
    return 1 if pulled.images.missing else 0


def _print_pulled(pulled: PulledData) -> None:
    """Print a downloaded data set, with a table of its missing images."""
    present = "" if pulled.fetched else ", already present"
    with output_errors():
        print_line(f"{pulled.folder}: {pulled.repository} at {pulled.revision}{present}")
        print_line(f"  paper: {pulled.paper}")
        print_line(f"  licence: {pulled.licence}")
        if pulled.images is not None:
            _print_images(pulled.images, pulled.folder)
    if pulled.images is not None:
        _print_unusable(pulled.images)


def _print_unusable(images: ImageDownload) -> None:
    for problem in images.unusable:
        print_note(f"not usable: {problem}")


def _print_images(images: ImageDownload, folder: str) -> None:
    from sightline.reporting.terminal import show

    print_line(
        f"  images: {images.requested:,}; present {images.present:,}, downloaded {images.downloaded:,}, "
        f"missing {len(images.missing):,}"
    )
    if images.missing:
        print_line()
        show([_missing(images, folder)])


def _missing(images: ImageDownload, folder: str) -> ReportTable:
    """The missing images by reason, the most frequent first, with one URL each."""
    from sightline.reporting.report_table import Column, ReportTable

    named = ((f"{url}: {failure.detail}", failure.reason) for url, failure in images.missing.items())
    columns = (
        Column("text", "reason", "reason"),
        Column("count", "images", "images"),
        Column("text", "the first", "first"),
    )
    ordered = sorted(by_reason(named).items(), key=lambda item: -len(item[1]))
    rows = tuple((reason, len(urls), urls[0]) for reason, urls in ordered)
    notes = (f"{folder}/image_manifest.json lists all of them; run the same command to try again",)
    return ReportTable("missing images", columns, rows, notes)
