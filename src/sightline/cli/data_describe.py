"""`sightline data describe`: print tables of the samples, labels, texts and verbs of a data set."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sightline.cli.data_options import add_folder, release_of
from sightline.cli.printing import print_json

if TYPE_CHECKING:
    from sightline.data.describe import DataDescription
    from sightline.data.instruction_verbs import VerbCounts
    from sightline.reporting.report_table import ReportTable

SUMMARY = "count the samples, labels, lengths and verbs of a data folder"

EXAMPLE = """examples:
  sightline data describe iibench --data data/iibench    labels, lengths (Table 1 of its paper)
  sightline data describe contextual --data data/contextual --split val --json
"""

MOST_VALUES = 30
"""Of a label with more values only the number of values is printed."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `data describe`."""
    parser.epilog = EXAMPLE
    add_folder(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Describe the folder; returns the exit status."""
    from sightline.data.describe import describe_data
    from sightline.reporting.terminal import show

    release, folder = release_of(options)
    found = describe_data(release, folder, options.split, show_progress=not options.quiet)
    if options.json:
        print_json(found)
    else:
        show([_labels(found), _lengths(found), *([_verbs(found.verbs)] if found.verbs else [])])
    return 0


def _labels(found: DataDescription) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable, Value

    columns = (
        Column("text", "label", "label"),
        Column("text", "value", "value"),
        Column("count", "samples", "samples"),
        Column("count", "images", "images"),
        Column("value", "% of the\nlabel's", "percent"),
    )
    listed = {label: values for label, values in found.labels.items() if len(values) <= MOST_VALUES}
    rows = tuple(
        (label, value, share.samples, share.images, Value(share.percent))
        for label, values in listed.items()
        for value, share in values.items()
    )
    splits = ", ".join(f"{name} {samples:,}" for name, samples in found.splits.items())
    notes = [
        f"{found.samples:,} samples ({splits}), {found.images:,} different images",
        *(
            [f"{found.unreadable_images:,} images could not be read and are counted by name"]
            if found.unreadable_images
            else []
        ),
        *(
            f"not shown: {label} with {len(values):,} values"
            for label, values in found.labels.items()
            if label not in listed
        ),
    ]
    return ReportTable(f"{found.benchmark}, {found.folder}", columns, rows, tuple(notes))


def _lengths(found: DataDescription) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable, Value

    columns = (
        Column("text", "text", "text"),
        Column("count", "number", "number"),
        Column("value", "words,\non average", "words"),
        Column("value", "characters,\non average", "characters"),
    )
    rows = tuple(
        (kind, length.texts, Value(length.words), Value(length.characters))
        for kind, length in found.lengths.items()
    )
    return ReportTable("lengths", columns, rows)


def _verbs(verbs: VerbCounts) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable

    columns = (
        Column("text", "verb", "verb"),
        Column("count", "times", "times"),
        Column("text", "its nouns", "nouns"),
    )
    rows = tuple(
        (verb, times, ", ".join(f"{noun} {often}" for noun, often in nouns))
        for verb, times, nouns in verbs.top
    )
    return ReportTable(
        "the most frequent verbs",
        columns,
        rows,
        (
            f"{verbs.different:,} different verbs in {verbs.commands:,} commands; {verbs.others:,} other "
            "instructions, mostly questions, have none",
            "verbs are found by closed word classes, without a parser",
        ),
    )
