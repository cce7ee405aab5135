"""Options and output that the subcommands of `sightline build` share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.cli.options import (
    ArgumentGroup,
    add_dry_run,
    add_model,
    add_quiet,
    add_request_limits,
    add_store,
)
from sightline.cli.printing import by_reason, print_budget_stop, requests_summary, saved_by_equal_requests
from sightline.errors import UserError, some_of
from sightline.text import print_line, print_note

if TYPE_CHECKING:
    from sightline.builders.folder import BuildManifest
    from sightline.builders.replies import ReplyRequests
    from sightline.builders.run import BuildSpec, GroupMaker
    from sightline.builders.sources import SourceItem
    from sightline.engine.client import ModelClient, RequestEstimate

T = TypeVar("T")

PRINTED_DROPS = 10
"""Dropped sources that are printed."""
PRINTED_NAMES = 5
"""Names that are printed for each reason."""


def add_building(parser: argparse.ArgumentParser, *, images: bool = True) -> None:
    """Add the options of every builder of groups."""
    group = parser.add_argument_group("building")
    add = group.add_argument
    add("--out", required=True, metavar="DIR", help="folder for groups.jsonl, manifest.json and images/")
    add("--seed", type=int, default=0, metavar="N", help="seed of all random choices (default: 0)")
    add_limit(group, "sources")
    if images:
        add("--processes", type=int, metavar="N", help="number of processes (default: one per core)")
        add("--format", choices=("png", "jpeg"), default="png", help="image format (default: png)")
    add(
        "--apart-from",
        action="append",
        default=[],
        metavar="DIR",
        help="built folder; drop sources whose image it uses; may repeat",
    )
    add_output(group)


def add_limit(group: ArgumentGroup, what: str) -> None:
    group.add_argument("--limit", type=int, metavar="N", help=f"use only the first N {what}")


def add_output(group: ArgumentGroup, *, force: str = "replace a folder with other settings") -> None:
    group.add_argument("--force", action="store_true", help=force)
    add_quiet(group)


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the images to work on: SOURCE, --images, --labels."""
    add = parser.add_argument
    add(
        "source",
        metavar="SOURCE",
        help="folder of images (names of class folders are the references); CSV or JSON Lines with "
        "image, question, answers; Google Landmarks CSV; or JSON object of file names and places",
    )
    add("--images", metavar="DIR", help="folder of the images that a file names (default: the file's)")
    add("--labels", metavar="FILE", help="names of the landmarks of a Landmarks CSV (landmark_id, category)")


def add_workers(group: ArgumentGroup) -> None:
    add = group.add_argument
    add("--processes", type=int, metavar="N", help="number of processes (default: one per core)")
    add("--threads", type=int, metavar="N", help="threads of each process (default: cores / processes)")


def add_requests(parser: argparse.ArgumentParser, *, fresh: bool = True, model_required: bool = True) -> None:
    """Add the options of builders that ask a model."""
    group = parser.add_argument_group("requests")
    add_model(group, required=model_required)
    add_request_limits(group)
    if fresh:
        tag = "ignore cached replies and store new ones under this tag"
        group.add_argument("--fresh", default="", metavar="TAG", help=tag)
    add_store(group)
    add_dry_run(group)


def workers(options: argparse.Namespace) -> tuple[int, int]:
    """The number of processes, and of threads of each."""
    cores = os.cpu_count() or 1
    processes = _processes(options, cores)
    threads = max(1, cores // processes) if options.threads is None else options.threads
    if threads < 1:
        raise UserError("--threads is too small", found=threads, expected="1 or more")
    return processes, threads


def _processes(options: argparse.Namespace, default: int) -> int:
    if options.processes is not None and options.processes < 1:
        raise UserError("--processes is too small", found=options.processes, expected="1 or more")
    return options.processes or default


def sources_of(options: argparse.Namespace) -> list[SourceItem]:
    """Read the sources that SOURCE, --images and --labels name."""
    from sightline.builders.folder import refuse_out_inside_inputs
    from sightline.builders.sources import image_sources

    source, images, labels = (
        Path(path) if path else None for path in (options.source, options.images, options.labels)
    )
    if source is None or not source.exists():
        raise UserError("there is no such folder or file", file=options.source)
    if images and not images.is_dir():
        raise UserError("there is no such folder", file=images, expected="a folder of images for --images")
    refuse_out_inside_inputs(Path(options.out), [source, *([images] if images else [])])
    return image_sources(source, images, labels)


def limited(sources: Sequence[T], options: argparse.Namespace) -> Sequence[T]:
    if options.limit is not None and options.limit < 1:
        raise UserError("--limit leaves nothing", found=options.limit, expected="1 or more")
    return sources[: options.limit]


def make(
    options: argparse.Namespace,
    sources: Sequence[SourceItem],
    maker: GroupMaker,
    spec: BuildSpec,
    processes: int | None = None,
) -> int:
    """Build a folder as the shared options say, and print the result.

    `processes` is the default of --processes; None means one per core.
    """
    from msgspec.structs import replace

    from sightline.builders.run import build

    processes = _processes(options, processes or os.cpu_count() or 1)
    manifest = build(
        limited(sources, options),
        maker,
        Path(options.out),
        replace(
            spec,
            settings={**spec.settings, "seed": options.seed, "format": options.format},
            apart_from=tuple(Path(folder) for folder in options.apart_from),
        ),
        processes=processes,
        force=options.force,
        show_progress=not options.quiet,
    )
    if not any(source.references for source in sources):
        print_note(f"none of the {len(sources):,} sources has a reference: acc and s_gt will have no value")
    print_built(manifest, Path(options.out))
    return 0


def print_built(manifest: BuildManifest, out: Path) -> None:
    """Print the contents of a built folder; dropped sources go to standard error."""
    print_line(f"{out / 'groups.jsonl'}: {manifest.groups:,} groups, {manifest.probes:,} probes")
    print_line(f"  images: {manifest.images:,} in {out / 'images'}")
    for other in manifest.apart_from:
        print_line(f"  apart from {other.folder}: compared with its {other.images:,} images")
    dropped = list(manifest.dropped.items())
    for name, reason in dropped[:PRINTED_DROPS]:
        print_note(f"dropped: {name}: {reason}")
    if len(dropped) > PRINTED_DROPS:
        more = len(dropped) - PRINTED_DROPS
        print_note(f"dropped: and {more:,} more, see {out / 'manifest.json'}")


def print_request_estimate(estimate: RequestEstimate, note: str = "") -> None:
    most = f" to {estimate.to_send_at_most:,}" if estimate.to_send_at_most > estimate.to_send else ""
    print_line(f"cached requests             {estimate.cached:,}")
    print_line(f"requests to send            {estimate.to_send:,}{most}{note}")
    if estimate.image_bytes is not None:
        print_line(f"bytes of images in them     {estimate.image_bytes:,}")


def estimate_requests(requests: ReplyRequests[Any], client: ModelClient, note: str = "") -> None:
    """Print what --dry-run finds out about the requests of a builder; the store is only read."""
    from sightline.builders.replies import count_requests

    with client.store(only_read=True) as store:
        print_request_estimate(count_requests(requests, client, store), note)


def print_requests(client: ModelClient) -> None:
    """Print on standard error how many requests were sent, and what the check of the endpoint found."""
    for line in filter(None, (requests_summary(client.counts), saved_by_equal_requests(client.counts))):
        print_note(line)
    for note in client.notes:
        print_note(note)


def request_exit_status(client: ModelClient, unanswered: Mapping[str, str], total: str, what: str) -> int:
    """Print on standard error what has no answer, and whether the budget stopped the requests."""
    if client.counts.stopped == "budget":
        print_budget_stop("requests to the model")
    if unanswered:
        print_note(f"{len(unanswered):,} of {total} have no {what} and are left out:")
        print_by_reason(unanswered)
        print_note("the same command retries temporary failures; --retry-errors retries all failures")
    return 4 if client.counts.stopped == "budget" else 1 if unanswered else 0


def print_by_reason(left_out: Mapping[str, str]) -> None:
    """Print on standard error what was left out, a line for each reason."""
    for why, names in by_reason(left_out.items()).items():
        print_note(f"  {why}: {some_of(names, PRINTED_NAMES)}")
