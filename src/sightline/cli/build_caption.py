"""`sightline build caption`: writes captions of images with a model that takes images."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import (
    add_limit,
    add_output,
    add_requests,
    limited,
    print_request_estimate,
    print_requests,
    request_exit_status,
)
from sightline.cli.options import model_client_options
from sightline.output import print_line, print_note

if TYPE_CHECKING:
    from sightline.builders.checked_images import CheckedImages
    from sightline.engine.captioning import Captioner
    from sightline.engine.client import ModelClient

SUMMARY = "caption images with a model, for text-only models (CODIS, section 5.1)"

EXAMPLE = """examples:
  sightline build caption data/codis --model http://localhost:8000/v1#llava --out captions.json
  sightline run codis:captions --set captions=captions.json --model openai/gpt-4o --data data/codis
  sightline build caption photos --model openai/gpt-4o --out captions.json --dry-run

Copies of an image are captioned once. Replies are cached in the store: the same command resumes after an
interruption, and asks nothing if all captions are cached.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build caption`."""
    parser.epilog = EXAMPLE
    group = parser.add_argument_group("captions")
    add = group.add_argument
    add(
        "data",
        metavar="DATA",
        help="data folder of CODIS or II-Bench, any folder of images, a built folder or a groups file",
    )
    add("--out", required=True, metavar="FILE", help="JSON list of image_id, caption, model, reply")
    add("--prompt", metavar="TEXT", help="prompt for each image (default: asks for a detailed description)")
    add_limit(group, "images")
    add_output(group, force="replace other captions in FILE")
    add_requests(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Ask and write the file; returns 1 if an image has no caption, 4 if the budget is reached."""
    from sightline.builders.built_folder import everything_dropped
    from sightline.builders.caption import refuse_other_captions
    from sightline.builders.checked_images import check_images
    from sightline.builders.image_index import images_in
    from sightline.engine.captioning import SAMPLING, Captioner
    from sightline.engine.client import ModelClient

    client = ModelClient(model_client_options(options, options.fresh), SAMPLING)
    captioner = Captioner(client, options.prompt, again=options.retry_errors)
    images = limited(list(images_in(Path(options.data)).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    if not gallery.files:
        raise everything_dropped(gallery.broken, "images")
    with client.store(only_read=True) as store:
        cached = gallery.named(captioner.cached(gallery.files.values(), store))
    refuse_other_captions(Path(options.out), cached, force=options.force)
    return (
        _dry_run(gallery, captioner, client) if options.dry_run else _ask(gallery, captioner, client, options)
    )


def _dry_run(gallery: CheckedImages, captioner: Captioner, client: ModelClient) -> int:
    with client.store(only_read=True) as store:
        estimate = captioner.estimate(gallery.files.values(), store)
    print_line(f"images                      {len(gallery.files):,}")
    for name, reason in gallery.broken.items():
        print_line(f"  broken: {name}: {reason}")
    print_line(f"distinct images             {estimate.cached + estimate.to_send:,}")
    print_request_estimate(estimate)
    return 0


def _ask(
    gallery: CheckedImages, captioner: Captioner, client: ModelClient, options: argparse.Namespace
) -> int:
    from sightline.builders.caption import write_captions

    out = Path(options.out)
    with client.store() as store:
        describing = captioner.describe(gallery.files.values(), store, show_progress=not options.quiet)
        by_digest = asyncio.run(describing)
    print_requests(client)
    captions = gallery.named(by_digest)
    written = sum(bool(one.text) for one in captions.values())
    if written:
        write_captions(captions, options.model, out)
        print_line(f"{out}: {written:,} captions of {len(set(by_digest)):,} distinct images")
    truncated = sum(one.cut for one in captions.values() if one.text)
    if truncated:
        print_note(f"{truncated:,} captions are truncated; raise --gen max_tokens=N")
    missing = {**gallery.broken, **{name: one.missing for name, one in captions.items() if one.missing}}
    total = len(captions) + len(gallery.broken)
    return request_exit_status(client, missing, f"{total:,} images", "caption")
