"""`sightline data pull`: download a data set, then the images that its records name by URL."""

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
    from sightline.data.image_download import ImageDownload
    from sightline.data.pull import PulledData
    from sightline.reporting.report_table import ReportTable

SUMMARY = "download a data set at its pinned revision and verify its checksums"

EXAMPLE = """examples:
  sightline data pull codis                              into ./data/codis
  sightline data pull contextual                         the records, then 506 images by their URLs
  sightline data pull styles                             weights for `build restyle`, into ./data/styles
  sightline data pull iibench --to /srv/data --from II-Bench.tar.gz
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `data pull`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("benchmark", metavar="DATA_SET", help="codis, iibench, contextual or styles")
    add("--to", default="data", metavar="DIR", help="parent folder of the data set (default: data)")
    add(
        "--from",
        dest="origin",
        metavar="URL|PATH",
        help="other source of the repository's .tar.gz at the pinned revision (contextual, styles: or a "
        "folder of the files); its checksum is verified too",
    )
    add(
        "--allow-private",
        action="store_true",
        help="also download images from private addresses (this machine and its network)",
    )
    add("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Download the data set; returns 1 if an image is missing."""
    from sightline.data.pull import pull_with_images
    from sightline.data.releases import releases
    from sightline.data.styles import STYLE_WEIGHTS

    known = {**releases(), STYLE_WEIGHTS.name: STYLE_WEIGHTS}
    if options.benchmark not in known:
        raise unknown_name("data set", options.benchmark, known)
    release = known[options.benchmark]
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


def _print_pulled(pulled: PulledData) -> None:
    """Print a downloaded data set, with a table of its missing images."""
    present = "" if pulled.fetched else ", already present"
    with output_errors():
        print_line(f"{pulled.folder}: {pulled.repository} at {pulled.revision}{present}")
        print_line(f"  paper: {pulled.paper}")
        print_line(f"  licence: {pulled.licence}")
        if pulled.images is not None:
            _print_images(pulled.images, pulled.folder)
    for problem in pulled.images.unusable if pulled.images else ():
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
