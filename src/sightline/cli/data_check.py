"""`sightline data check`: verify the records and images of a data folder."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sightline.cli.data_options import add_folder, release_of
from sightline.output import print_note

if TYPE_CHECKING:
    from sightline.data.check import DataCheck, ImageFault, SplitCheck
    from sightline.reporting.report_table import ReportTable

SUMMARY = "verify the records and images of a data folder; compare it with the release"

EXAMPLE = """examples:
  sightline data check codis --data data/codis
  sightline data check iibench --data data/iibench --split test
"""

MOST_PRINTED = 10
"""How many faults of a kind are printed."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `data check`."""
    parser.epilog = EXAMPLE
    add_folder(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Check the folder; returns 1 if an image is missing or broken."""
    from sightline.cli.printing import print_json, print_tables
    from sightline.data.check import check_data

    release, folder = release_of(options)
    found = check_data(release, folder, options.split, show_progress=not options.quiet)
    if options.json:
        print_json(found)
    else:
        print_tables([_table(found, split) for split in found.splits], "table")
    _list_faults(found)
    return 0 if found.sound else 1


def _table(found: DataCheck, split: SplitCheck) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable

    columns = (
        Column("text", "label", "label"),
        Column("text", "value", "value"),
        Column("count", "samples", "samples"),
    )
    rows = tuple(
        (label, value, count) for label, values in split.labels.items() for value, count in values.items()
    )
    return ReportTable(
        f"{found.benchmark} {split.split}, {found.folder}", columns, rows, tuple(_notes(split))
    )


def _notes(split: SplitCheck) -> list[str]:
    sizes = ", ".join(f"{size} ({count:,} images)" for size, count in split.cluster_sizes.items())
    return [
        f"{split.samples:,} samples, {split.images:,} image files, {split.clusters:,} distinct images",
        f"samples by cluster size (samples with the same image): {sizes}",
        *_against_release(split),
        f"{len(split.missing):,} images missing, {len(split.broken):,} broken, "
        f"{sum(len(paths) for paths in split.duplicates):,} files with the content of another",
    ]


def _against_release(split: SplitCheck) -> list[str]:
    if split.released is None:
        return [f"{split.file} is not part of the release, there is nothing to compare it with"]
    return [
        f"the paper counts {split.published_samples:,} samples and {split.published_clusters:,} distinct "
        f"images: {'equal' if split.as_published else 'different'}",
        f"{split.file} {'is' if split.released else 'differs from'} the pinned release",
    ]


def _list_faults(found: DataCheck) -> None:
    for split in found.splits:
        _print_faults("missing", split.missing)
        _print_faults("broken", split.broken)
    if found.unreferenced:
        names = ", ".join(found.unreferenced[:MOST_PRINTED])
        more = (
            f" and {len(found.unreferenced) - MOST_PRINTED:,} more"
            if len(found.unreferenced) > MOST_PRINTED
            else ""
        )
        print_note(f"{len(found.unreferenced):,} files without a record: {names}{more}")


def _print_faults(kind: str, faults: list[ImageFault]) -> None:
    for fault in faults[:MOST_PRINTED]:
        print_note(f"{kind}: {fault.image} ({', '.join(fault.samples)}): {fault.problem}")
    if len(faults) > MOST_PRINTED:
        print_note(f"{kind}: and {len(faults) - MOST_PRINTED:,} more")
