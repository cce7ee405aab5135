"""`sightline build caption`: what is in images, in words, by a model that takes images."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import limited, tell_unanswered
from sightline.cli.options import add_asking, add_dry_run, add_model, add_quiet, add_store, asking_of_model
from sightline.cli.printing import print_budget_stop, requests_summary

if TYPE_CHECKING:
    from sightline.builders.image_index import CheckedImages
    from sightline.engine.captioning import Caption, Captioner
    from sightline.engine.client import ModelClient

SUMMARY = "captions in the images' place, by a model that takes images (CODIS, section 5.1)"

EXAMPLE = """examples:
  sightline build caption data/codis --model http://localhost:8000/v1#llava --out captions.json
  sightline run codis:captions --set captions=captions.json --model openai/gpt-4o --data data/codis
  sightline build caption photos --model openai/gpt-4o --out captions.json --dry-run

An image that lies there under several names is asked about once. What was asked is remembered in the store,
so that the same command goes on where it was stopped, and asks nothing when all is known.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build caption`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument_group("what is captioned").add_argument
    add(
        "data",
        metavar="DATA",
        help="data folder of CODIS or II-Bench, any folder of images, a builder's folder or a groups file",
    )
    add("--out", required=True, metavar="FILE", help="JSON list of image_id, caption, model, reply")
    add("--prompt", metavar="TEXT", help="what is asked about each image (default: a detailed description)")
    add("--limit", type=int, metavar="N", help="only the first N images")
    add("--force", action="store_true", help="replace other captions in FILE")
    add_quiet(parser)
    asking = parser.add_argument_group("asking")
    add_model(asking)
    add_asking(asking)
    asking.add_argument(
        "--fresh", default="", metavar="TAG", help="ask anew under this tag; nothing is deleted"
    )
    add_store(asking)
    add_dry_run(asking)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Ask, and write the file; 1 where an image has no caption, 4 where the budget is reached."""
    from sightline.builders.built_folder import nothing_left
    from sightline.builders.caption import refuse_other_captions
    from sightline.builders.image_index import check_images, images_in
    from sightline.engine.captioning import SAMPLING, Captioner
    from sightline.engine.client import ModelClient

    asking = asking_of_model(options, options.fresh)
    client = ModelClient(asking, SAMPLING)
    captioner = Captioner(client, options.prompt, again=options.retry_errors)
    images = limited(list(images_in(Path(options.data)).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    if not gallery.files:
        raise nothing_left(gallery.broken, "images")
    with client.store(only_read=True) as store:
        known = gallery.named(captioner.cached(gallery.files.values(), store))
    refuse_other_captions(Path(options.out), known, force=options.force)
    return (
        _dry_run(gallery, captioner, client) if options.dry_run else _ask(gallery, captioner, client, options)
    )


def _dry_run(gallery: CheckedImages, captioner: Captioner, client: ModelClient) -> int:
    with client.store(only_read=True) as store:
        found = captioner.estimate(gallery.files.values(), store)
    print(f"images                    {len(gallery.files):,}")
    for name, reason in gallery.broken.items():
        print(f"  broken: {name}: {reason}")
    print(f"different ones              {found.images:,}")
    print(f"requests known already      {found.cached:,}")
    print(f"requests to be sent         {found.to_ask:,}")
    print(f"bytes of images in them   {found.image_bytes:,}")
    return 0


def _ask(
    gallery: CheckedImages, captioner: Captioner, client: ModelClient, options: argparse.Namespace
) -> int:
    from sightline.builders.caption import write

    out, counts = Path(options.out), client.counts
    with client.store() as store:
        found = asyncio.run(
            captioner.describe(gallery.files.values(), store, show_progress=not options.quiet)
        )
    print(requests_summary(counts), file=sys.stderr)
    captions = gallery.named(found)
    written = sum(bool(one.text) for one in captions.values())
    if written:
        write(captions, options.model, out)
        print(f"{out}: {written:,} captions of {len(set(found)):,} different images")
    missing = {**gallery.broken, **{name: one.missing for name, one in captions.items() if one.missing}}
    _tell(captions, missing, len(captions) + len(gallery.broken))
    if counts.stopped == "budget":
        print_budget_stop("requests to the model")
        return 4
    return 1 if missing else 0


def _tell(captions: Mapping[str, Caption], missing: Mapping[str, str], images: int) -> None:
    cut = sum(one.cut for one in captions.values() if one.text)
    if cut:
        print(f"{cut:,} captions were cut off; --gen max_tokens=N lets them be longer", file=sys.stderr)
    if missing:
        tell_unanswered(missing, f"{images:,} images", "caption")
