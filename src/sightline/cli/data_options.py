"""The options that `data check` and `data describe` share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_options, add_plugins, add_quiet

if TYPE_CHECKING:
    from sightline.benchmarks.release import Release


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add the data folder that is read, and how its description is printed."""
    parser.add_argument("benchmark", metavar="BENCHMARK", help="codis, iibench or contextual")
    add_options(parser, ["data"])
    parser.add_argument("--split", metavar="S", help="only this split (default: all that exist)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    add_plugins(parser)


def release_of(options: argparse.Namespace) -> tuple[Release, Path | None]:
    """Find the data set and the folder that `add_folder` describes.

    Returns:
        The release of the data set, and the data folder; None without --data and SIGHTLINE_DATA.
    """
    from sightline.data.releases import releases
    from sightline.errors import unknown_name
    from sightline.plan.data_folder import spec_data_folder
    from sightline.plan.spec import Spec

    known = releases()
    if options.benchmark not in known:
        raise unknown_name("data set", options.benchmark, known)
    return known[options.benchmark], spec_data_folder(Spec(task=options.benchmark, data=options.data))
