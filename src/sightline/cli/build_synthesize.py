"""`sightline build synthesize`: instructions for images, with responses, by a model that sees them."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import limited, preview_path, tell_by_reason, tell_unanswered
from sightline.cli.options import add_asking, add_dry_run, add_model, add_quiet, add_store, asking_of_model
from sightline.cli.printing import print_budget_stop, requests_summary

if TYPE_CHECKING:
    from sightline.builders.synthesize import SynthesisJob
    from sightline.engine.client import ModelClient

SUMMARY = "instructions for images, with responses, by a model that sees them (ConTextual, Appendix H)"

EXAMPLE = """examples:
  sightline build synthesize --model openai/gpt-4o --images raw --examples data/contextual --out written
  sightline build verify written/contextual_synthetic.csv --write list.csv
  sightline build verify written/contextual_synthetic.csv --human list.csv --out data/synthetic
  sightline run contextual --split synthetic --data data/synthetic --model http://localhost:8000/v1#llava

The model is shown the two examples of Figure 22, good and bad instructions with the reasons, and then the
image; the examples' images are ConTextual's own. A reply that cannot be used is asked for again, twice at
most; what was asked is remembered in the store, so that the same command builds the same folder. DIR receives
images/ and contextual_synthetic.csv. What is written is for people to accept, with `sightline build verify`.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build synthesize`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument_group("what is written about").add_argument
    add("--images", required=True, metavar="DIR", help="candidates: any folder of images, or a data folder")
    add(
        "--examples",
        metavar="DIR",
        help="ConTextual's data folder, for the two images that the prompt shows (else SIGHTLINE_DATA)",
    )
    add("--category", metavar="NAME", help="category of all (default: Miscellaneous Natural Scenes)")
    add("--limit", type=int, metavar="N", help="only the first N images")
    add = parser.add_argument_group("building").add_argument
    add(
        "--out",
        required=True,
        metavar="DIR",
        help="folder for contextual_synthetic.csv, images/, manifest.json",
    )
    add("--preview", metavar="FILE.png", help="draw some images with what is written on one sheet")
    add("--force", action="store_true", help="replace what was built there with other settings")
    add_quiet(parser)
    asking = parser.add_argument_group("asking")
    add_model(asking)
    add_asking(asking)
    fresh = "ask anew under this tag; nothing is deleted"
    asking.add_argument("--fresh", default="", metavar="TAG", help=fresh)
    add_store(asking)
    add_dry_run(asking)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Ask, and build the folder; 1 where an image has no answer yet, 4 where the budget is reached."""
    from sightline.builders.built_folder import refuse_other_contents, refuse_out_among
    from sightline.builders.image_index import check_images, images_in
    from sightline.builders.synthesize import CATEGORY, SAMPLING, examples_in, prepare
    from sightline.engine.client import ModelClient

    sheet = preview_path(options)
    asking = asking_of_model(options, options.fresh)
    client = ModelClient(asking, SAMPLING)
    data = options.examples or os.environ.get("SIGHTLINE_DATA")
    examples = examples_in(Path(data) if data else None)
    folder, out = Path(options.images), Path(options.out)
    refuse_out_among(out, [folder, *(Path(example.path) for example in examples)])
    images = limited(list(images_in(folder).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    category = CATEGORY if options.category is None else options.category
    job = prepare(gallery, examples, client, category=category)
    refuse_other_contents(out, job.build, force=options.force)
    return _dry_run(job, client) if options.dry_run else _build(job, client, options, sheet)


def _dry_run(job: SynthesisJob, client: ModelClient) -> int:
    from sightline.builders.synthesize import estimate

    with client.store(only_read=True) as store:
        found = estimate(job, client, store)
    print(f"images                    {len(job.images):,}")
    print(f"  dropped: {len(job.dropped):,}")
    print(f"requests known already      {found.known:,}")
    print(f"requests to be sent         {found.at_least:,} to {found.at_most:,}, of three images each")
    return 0


def _build(job: SynthesisJob, client: ModelClient, options: argparse.Namespace, sheet: Path | None) -> int:
    from sightline.builders.preview import draw_lines
    from sightline.builders.synthesize import TABLE, lines_of, synthesize, write

    out, counts = Path(options.out), client.counts
    with client.store() as store:
        found = asyncio.run(synthesize(job, client, store, show_progress=not options.quiet))
    unanswered = {name: one.unanswered for name, one in found.items() if one.unanswered}
    print(requests_summary(counts), file=sys.stderr)
    lines = lines_of(job, found)
    if lines or not unanswered:
        manifest = write(job, found, out, force=options.force)
        print(f"{out / TABLE}: {manifest.groups:,} instructions with responses, for people to accept:")
        print(f"  sightline build verify {out / TABLE} --write list.csv")
        tell_by_reason(manifest.dropped)
        if sheet is not None:
            draw_lines(lines, out, sheet, seed=0)
            print(f"  preview: {sheet}")
    if counts.stopped == "budget":
        print_budget_stop("requests to the model")
    if unanswered:
        tell_unanswered(unanswered, f"{len(job.images):,} images", "instruction")
    return 4 if counts.stopped == "budget" else 1 if unanswered else 0
