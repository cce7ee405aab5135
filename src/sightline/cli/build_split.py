"""`sightline build split`: draws a validation split in proportion to the categories."""

from __future__ import annotations

import argparse
from pathlib import Path

from sightline.cli.build_options import print_by_reason
from sightline.output import print_line, print_note

SUMMARY = "sample a validation split in proportion to the categories (ConTextual, Appendix C)"

EXAMPLE = """examples:
  sightline build split all.csv --out data/mine
  sightline build split all.csv --out data/mine --count 50 --seed 1
  sightline run contextual --data data/mine --split val --model openai/gpt-4o

all.csv has the columns image_url, instruction, response and category. As in ConTextual's release, DIR
receives contextual_val.csv, the sampled rows, and contextual_test.csv, all rows without their responses (the
rows of val are in test too), and the images that are next to all.csv. Of ConTextual's 506 instances, 100 are
30 natural scenes and 10 of each other category.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build split`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("table", metavar="TABLE", help="CSV in ConTextual's layout, with responses")
    add("--out", required=True, metavar="DIR", help="folder for contextual_val.csv and contextual_test.csv")
    add(
        "--count",
        type=int,
        default=100,
        metavar="N",
        help="number of rows to sample (default: 100, as in the paper)",
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of the sample (default: 0)")
    add("--force", action="store_true", help="replace the files of an earlier split")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Draw and write the split; returns the exit status."""
    from sightline.builders.checked_images import check_images
    from sightline.builders.split import split_table, write_split

    split = split_table(Path(options.table), options.count, options.seed)
    gallery = check_images(split.images)
    val, test = write_split(split, gallery.files, Path(options.out), force=options.force)
    parts = ", ".join(
        f"{split.drawn[category]} of {size} {category}" for category, size in split.sizes.items()
    )
    print_line(f"{val}: {len(split.chosen):,} rows ({parts})")
    print_line(f"{test}: all {len(split.rows):,} rows, without their responses")
    print_line(f"  images: {len(gallery.files):,} in {options.out}")
    if gallery.broken:
        print_note(f"images missing or broken: {len(gallery.broken):,}")
        print_by_reason(gallery.broken)
    return 0
