"""`sightline data`: download public data sets at a pinned revision; check or describe a data folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.errors import UserError, unknown_name

if TYPE_CHECKING:
    from sightline.benchmarks.release import Release
    from sightline.data.check import Check, Fault, SplitCheck
    from sightline.report.report_table import ReportTable

EXAMPLE = """examples:
  sightline data pull codis                              into ./data/codis
  sightline data pull contextual                         the records, then 506 images by their URLs
  sightline data pull styles                             weights for `build restyle`, into ./data/styles
  sightline data pull iibench --to /srv/data --from II-Bench.tar.gz
  sightline data check iibench --data data/iibench --split test
  sightline data describe iibench --data data/iibench    labels, lengths (Table 1 of its paper)
"""
SHOWN = 10
"""How many faults of a kind are printed."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `data`."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "action",
        choices=("pull", "check", "describe"),
        metavar="ACTION",
        help="pull: download a data set; check: verify a folder; describe: count its samples",
    )
    parser.add_argument(
        "benchmark", metavar="BENCHMARK", help="codis, iibench or contextual; for pull also styles"
    )
    pull = parser.add_argument_group("pull")
    pull.add_argument("--to", metavar="DIR", help="parent folder of the data set (default: ./data)")
    pull.add_argument(
        "--from",
        dest="origin",
        metavar="URL|PATH",
        help="other source of the repository's .tar.gz at the pinned revision (contextual, styles: or a "
        "folder of the files); its checksum is verified too",
    )
    pull.add_argument(
        "--allow-private",
        action="store_true",
        help="also download images from private addresses (this machine and its network)",
    )
    check = parser.add_argument_group("check and describe")
    check.add_argument(
        "--data", metavar="DIR", help="data folder in the released layout (default: SIGHTLINE_DATA)"
    )
    check.add_argument("--split", metavar="S", help="only this split (default: all that exist)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="display no progress")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Download, check or describe; returns 1 if an image is missing or broken."""
    from sightline.data.releases import releases
    from sightline.data.styles import STYLES

    actions = {"pull": _pull, "check": _check, "describe": _describe}
    if options.action not in actions:
        raise unknown_name("action", options.action, actions)
    known = {**releases(), STYLES.name: STYLES} if options.action == "pull" else releases()
    if options.benchmark not in known:
        raise unknown_name("data set", options.benchmark, known)
    return actions[options.action](known[options.benchmark], options)


def _pull(source: Release, options: argparse.Namespace) -> int:
    from sightline.cli.data_pull import print_pulled
    from sightline.data.pull import pull_whole

    _refuse(options, "check", data=None, split=None)
    if options.allow_private and not source.image_urls:
        raise UserError(
            f"--allow-private has no effect: {source.name} has no images by URL",
            expected="no --allow-private",
        )
    pulled = pull_whole(
        source,
        Path(options.to or "data"),
        options.origin,
        allow_private=options.allow_private,
        show_progress=not options.quiet,
    )
    print_pulled(pulled, as_json=options.json)
    return 1 if pulled.images and pulled.images.missing else 0


def _check(source: Release, options: argparse.Namespace) -> int:
    from sightline.cli.printing import print_json, print_tables
    from sightline.data.check import check

    found = check(source, _folder(source, options), options.split, show_progress=not options.quiet)
    if options.json:
        print_json(found)
    else:
        print_tables([_table(found, split) for split in found.splits], "table")
    _list_faults(found)
    return 0 if found.sound else 1


def _describe(source: Release, options: argparse.Namespace) -> int:
    from sightline.cli.data_describe import print_description
    from sightline.data.describe import describe

    found = describe(source, _folder(source, options), options.split, show_progress=not options.quiet)
    print_description(found, as_json=options.json)
    return 0


def _folder(source: Release, options: argparse.Namespace) -> Path | None:
    """The data folder. Raises UserError for an option of `pull`."""
    from sightline.plan.data_folder import data_folder
    from sightline.plan.spec import Spec

    _refuse(options, "pull", to=None, origin=None, allow_private=False)
    return data_folder(Spec(task=source.name, data=options.data))


def _refuse(options: argparse.Namespace, action: str, **defaults: object) -> None:
    """Raise UserError for an option of another action."""
    for name, default in defaults.items():
        if getattr(options, name) != default:
            word = "--from" if name == "origin" else f"--{name.replace('_', '-')}"
            raise UserError(f"{word} belongs to `data {action}`", expected="see `sightline data --help`")


def _table(found: Check, split: SplitCheck) -> ReportTable:
    from sightline.report.report_table import Column, ReportTable

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
        f"{sum(len(paths) for paths in split.same):,} files with the content of another",
    ]


def _against_release(split: SplitCheck) -> list[str]:
    if split.released is None:
        return [f"{split.file} is not part of the release, there is nothing to compare it with"]
    return [
        f"the paper counts {split.published_samples:,} samples and {split.published_clusters:,} distinct "
        f"images: {'equal' if split.as_published else 'different'}",
        f"{split.file} {'is' if split.released else 'differs from'} the pinned release",
    ]


def _list_faults(found: Check) -> None:
    for split in found.splits:
        _print_faults("missing", split.missing)
        _print_faults("broken", split.broken)
    if found.unreferenced:
        names = ", ".join(found.unreferenced[:SHOWN])
        more = f" and {len(found.unreferenced) - SHOWN:,} more" if len(found.unreferenced) > SHOWN else ""
        print(f"{len(found.unreferenced):,} files that no record names: {names}{more}", file=sys.stderr)


def _print_faults(kind: str, faults: list[Fault]) -> None:
    for fault in faults[:SHOWN]:
        print(f"{kind}: {fault.image} ({', '.join(fault.samples)}): {fault.problem}", file=sys.stderr)
    if len(faults) > SHOWN:
        print(f"{kind}: and {len(faults) - SHOWN:,} more", file=sys.stderr)
