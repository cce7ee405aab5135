"""What the kinds of `sightline build` share: their options, and the end of their work."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.cli.options import Group, add_quiet
from sightline.cli.printing import by_reason
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.builders.manifest import BuildManifest
    from sightline.builders.run import GroupMaker
    from sightline.builders.sources import SourceItem

T = TypeVar("T")

SHOWN = 10
"""Dropped sources that are printed."""
NAMED = 5
"""Things that are named for each reason why they have no answer."""


def add_building(parser: argparse.ArgumentParser, *, images: bool = True, out: bool = True) -> None:
    """The options of every builder; --processes and --format only for those that make `images`.

    `out` is whether every call needs --out (a kind that can also only count sees to it itself).
    """
    group = parser.add_argument_group("building")
    add = group.add_argument
    add("--out", required=out, metavar="DIR", help="folder for groups.jsonl, manifest.json and images/")
    add("--seed", type=int, default=0, metavar="N", help="seed of all choices (default 0)")
    add("--limit", type=int, metavar="N", help="only the first N sources")
    if images:
        add("--processes", type=int, metavar="N", help="processes that work (default: one a core)")
        add("--format", choices=("png", "jpeg"), default="png", help="of the images made (default png)")
    add(
        "--apart-from",
        action="append",
        default=[],
        metavar="DIR",
        help="another builder's folder: sources whose image it holds are dropped; may repeat",
    )
    add("--preview", metavar="FILE.png", help="draw some groups on one sheet, to be looked at")
    add("--force", action="store_true", help="replace what was built there with other settings")
    add_quiet(group)


def add_sources(parser: argparse.ArgumentParser) -> None:
    """The images that are worked on: SOURCE, --images, --labels."""
    add = parser.add_argument
    add(
        "source",
        metavar="SOURCE",
        help="folder of images (its class folders, if any, are the references); CSV or JSON Lines with "
        "image, question, answers; Google Landmarks csv; or JSON object of file names and places",
    )
    add("--images", metavar="DIR", help="where the images of a file lie (default: its folder)")
    add("--labels", metavar="FILE", help="names of a Landmarks csv's landmarks (landmark_id, category)")


def add_reading(group: Group) -> None:
    """How many work where images are read: --processes, --threads."""
    add = group.add_argument
    add("--processes", type=int, metavar="N", help="processes that work (default: one a core)")
    add("--threads", type=int, metavar="N", help="threads of each (default: the cores dealt out among them)")


def shared_out(options: argparse.Namespace) -> tuple[int, int]:
    """How many processes read, with how many threads each; all cores together where neither is said."""
    cores = os.cpu_count() or 1
    processes = cores if options.processes is None else options.processes
    threads = max(1, cores // max(1, processes)) if options.threads is None else options.threads
    for option, number in (("--processes", processes), ("--threads", threads)):
        if number < 1:
            raise UserError(f"{option} is too small", found=number, expected="1 or more")
    return processes, threads


def sources_of(options: argparse.Namespace) -> list[SourceItem]:
    """The sources that SOURCE, --images and --labels name; UserError where one is wrong."""
    from sightline.builders.built_folder import refuse_out_among
    from sightline.builders.sources import image_sources

    source, images, labels = (
        Path(path) if path else None for path in (options.source, options.images, options.labels)
    )
    if source is None or not source.exists():
        raise UserError("there is no such folder or file", file=options.source)
    if images and not images.is_dir():
        raise UserError("there is no such folder", file=images, expected="the images' for --images")
    refuse_out_among(Path(options.out), [source, *([images] if images else [])])
    return image_sources(source, images, labels)


def limited(sources: Sequence[T], options: argparse.Namespace) -> Sequence[T]:
    """The sources that --limit leaves; UserError where it leaves none."""
    if options.limit is not None and options.limit < 1:
        raise UserError("--limit leaves nothing", found=options.limit, expected="1 or more")
    return sources[: options.limit]


def preview_path(options: argparse.Namespace) -> Path | None:
    """Where the sheet goes, None where none is asked for; UserError where it cannot go there."""
    if options.preview is None:
        return None
    path = Path(options.preview)
    if path.suffix.lower() != ".png" or path.is_dir():
        raise UserError("is no place for --preview", file=path, expected="a file that ends in .png")
    # The sheet may lie in the folder that is built, which need not be there yet.
    out = Path(options.out).absolute() if options.out else None
    if not path.parent.is_dir() and path.parent.absolute() != out:
        raise UserError("there is no such folder", file=path.parent, expected="an existing one for --preview")
    return path


def make(
    options: argparse.Namespace,
    sources: Sequence[SourceItem],
    work: GroupMaker,
    *,
    kind: str,
    settings: Mapping[str, Any],
    each: int = 0,
    processes: int | None = None,
    passed_over: Mapping[str, int] | None = None,
) -> int:
    """Build as the shared options say, tell what came of it, draw the sheet; the exit status.

    `settings` are the builder's own; seed and format join them here. `each` is how many images a source
    gives, for the estimate; `processes` how many work where --processes does not say it (None: one a core).
    """
    from sightline.builders.run import build

    sheet = preview_path(options)
    if options.processes is not None:
        processes = options.processes
    elif processes is None:
        processes = os.cpu_count() or 1
    if processes < 1:
        raise UserError("--processes is too small", found=processes, expected="1 or more")
    manifest = build(
        limited(sources, options),
        work,
        Path(options.out),
        kind=kind,
        settings={**settings, "seed": options.seed, "format": options.format},
        processes=processes,
        apart_from=[Path(folder) for folder in options.apart_from],
        show_progress=not options.quiet,
        force=options.force,
        each=each,
        passed_over=passed_over,
    )
    if not any(source.references for source in sources):
        print(
            f"none of the {len(sources):,} sources has a reference: acc and s_gt will have no value",
            file=sys.stderr,
        )
    tell(manifest, Path(options.out))
    draw(Path(options.out), sheet, options.seed)
    return 0


def tell(manifest: BuildManifest, out: Path) -> None:
    """Print what a folder holds now, and on standard error what was dropped and why."""
    print(f"{out / 'groups.jsonl'}: {manifest.groups:,} groups, {manifest.probes:,} probes")
    print(f"  images: {manifest.images:,} in {out / 'images'}")
    for other in manifest.apart_from:
        print(f"  apart from {other.folder}: held against its {other.images:,} images")
    dropped = list(manifest.dropped.items())
    for name, reason in dropped[:SHOWN]:
        print(f"dropped: {name}: {reason}", file=sys.stderr)
    if len(dropped) > SHOWN:
        print(f"dropped: and {len(dropped) - SHOWN:,} more, see {out / 'manifest.json'}", file=sys.stderr)


def tell_unanswered(unanswered: Mapping[str, str], whole: str, what: str) -> None:
    """Print on standard error which of the `whole` have no answer (`what`), by the reason, and the remedy."""
    print(f"{len(unanswered):,} of {whole} have no {what} and are left out:", file=sys.stderr)
    tell_by_reason(unanswered)
    print(
        "the same command asks again what failed for a time; --retry-errors asks the rest too",
        file=sys.stderr,
    )


def tell_by_reason(left_out: Mapping[str, str]) -> None:
    """Print on standard error what was left out, a line for each reason."""
    for why, names in by_reason(left_out.items()).items():
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        print(f"  {why}: {', '.join(names[:NAMED])}{more}", file=sys.stderr)


def draw(out: Path, sheet: Path | None, seed: int) -> None:
    """Draw the sheet of what was built, where one is asked for."""
    if sheet is not None:
        from sightline.builders.preview import sheet as draw_sheet

        draw_sheet(out, sheet, seed=seed)
        print(f"  preview: {sheet}")
