"""`sightline data pull`: the files of a data set, then the images that its records name by url."""

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
    """Print what was pulled, with a table of what is missing, or as JSON."""
    if as_json:
        print_json(pulled)
        return
    there = "" if pulled.fetched else ", there already"
    with output_errors():
        print(f"{pulled.folder}: {pulled.repository} at {pulled.revision}{there}")
        print(f"  paper: {pulled.paper}")
        print(f"  licence: {pulled.licence}")
        if pulled.images is not None:
            _print_images(pulled.images, pulled.folder)
    for problem in pulled.images.unusable if pulled.images else ():
        print(f"not taken: {problem}", file=sys.stderr)


def _print_images(images: ImageDownload, folder: str) -> None:
    from sightline.report.terminal import show

    print(
        f"  images: {images.requested:,}, of which {images.present:,} were there, {images.downloaded:,} were "
        f"fetched, {len(images.missing):,} are missing"
    )
    if images.missing:
        print()
        show([_missing(images, folder)])


def _missing(images: ImageDownload, folder: str) -> ReportTable:
    """The missing images by the reason, the commonest first, with one url of each."""
    from sightline.report.report_table import Column, ReportTable

    named = ((f"{url}: {lost.detail}", lost.reason) for url, lost in images.missing.items())
    columns = (
        Column("text", "reason", "reason"),
        Column("count", "images", "images"),
        Column("text", "the first", "first"),
    )
    ordered = sorted(by_reason(named).items(), key=lambda item: -len(item[1]))
    rows = tuple((reason, len(urls), urls[0]) for reason, urls in ordered)
    notes = (
        f"every one of them is listed in {folder}/image_manifest.json; the same command asks for them again",
    )
    return ReportTable("missing images", columns, rows, notes)
