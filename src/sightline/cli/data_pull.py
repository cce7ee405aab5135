"""`sightline data pull`: download a data set, then the images that its records name by URL."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sightline.cli.pipe import output_errors
from sightline.cli.printing import by_reason, print_json

if TYPE_CHECKING:
    from sightline.data.image_download import ImageDownload
    from sightline.data.pull import Pulled
    from sightline.report.report_table import ReportTable


def print_pulled(pulled: Pulled, *, as_json: bool) -> None:
    """Print a downloaded data set, with a table of its missing images.

    Args:
        pulled: The data set.
        as_json: Whether to print JSON.
    """
    if as_json:
        print_json(pulled)
        return
    present = "" if pulled.fetched else ", already present"
    with output_errors():
        print(f"{pulled.folder}: {pulled.repository} at {pulled.revision}{present}")
        print(f"  paper: {pulled.paper}")
        print(f"  licence: {pulled.licence}")
        if pulled.images is not None:
            _print_images(pulled.images, pulled.folder)
    for problem in pulled.images.unusable if pulled.images else ():
        print(f"not usable: {problem}", file=sys.stderr)


def _print_images(images: ImageDownload, folder: str) -> None:
    from sightline.report.terminal import show

    print(
        f"  images: {images.requested:,}; present {images.present:,}, downloaded {images.downloaded:,}, "
        f"missing {len(images.missing):,}"
    )
    if images.missing:
        print()
        show([_missing(images, folder)])


def _missing(images: ImageDownload, folder: str) -> ReportTable:
    """The missing images by reason, the most frequent first, with one URL each."""
    from sightline.report.report_table import Column, ReportTable

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
