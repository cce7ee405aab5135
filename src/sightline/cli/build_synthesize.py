"""`sightline build synthesize`: instructions for images, with responses, by a model that takes images."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import (
    add_limit,
    add_output,
    add_requests,
    estimate_requests,
    limited,
    preview_path,
    print_by_reason,
    print_missing_characters,
    print_requests,
    request_exit_status,
)
from sightline.cli.options import model_client_options
from sightline.output import print_line

if TYPE_CHECKING:
    from sightline.builders.synthesize import SynthesisJob
    from sightline.engine.client import ModelClient

SUMMARY = (
    "write instructions with responses for images, with a model that accepts images (ConTextual, Appendix H)"
)

EXAMPLE = """examples:
  sightline build synthesize --model openai/gpt-4o --images raw --examples data/contextual --out written
  sightline annotate new verify written/contextual_synthetic.csv --name synthetic
  sightline annotate invite synthetic Anna Ben          (then sightline serve, until all are judged)
  sightline annotate export synthetic --out synthetic
  sightline run contextual --split synthetic --data synthetic/verified --model http://localhost:8000/v1#llava

The prompt shows the two examples of Figure 22, good and bad instructions with the reasons, and then the
image. The examples' images are ConTextual's own. After an unusable reply, the request is sent again, at
most twice. Replies are cached in the store: the same command builds the same folder. DIR receives images/ and
contextual_synthetic.csv. Let humans accept the instructions with `sightline annotate new verify`.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build synthesize`."""
    parser.epilog = EXAMPLE
    group = parser.add_argument_group("images")
    add = group.add_argument
    add("--images", required=True, metavar="DIR", help="candidates: any folder of images, or a data folder")
    add(
        "--examples",
        metavar="DIR",
        help="ConTextual's data folder with the two images of the prompt (default: SIGHTLINE_DATA)",
    )
    add(
        "--category",
        metavar="NAME",
        help="category of all instructions (default: Miscellaneous Natural Scenes)",
    )
    add_limit(group, "images")
    building = parser.add_argument_group("building")
    building.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="folder for contextual_synthetic.csv, images/, manifest.json",
    )
    add_output(building, preview="draw some images with their instructions on one sheet")
    add_requests(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Ask and build the folder; returns 1 if an image has no answer yet, 4 if the budget is reached."""
    from sightline.builders.built_folder import refuse_other_contents, refuse_out_inside_inputs
    from sightline.builders.checked_images import check_images
    from sightline.builders.image_index import images_in
    from sightline.builders.synthesize import CATEGORY, SAMPLING, example_images, prepare_synthesis
    from sightline.engine.client import ModelClient

    sheet = preview_path(options)
    client = ModelClient(model_client_options(options, options.fresh), SAMPLING)
    data = options.examples or os.environ.get("SIGHTLINE_DATA")
    examples = example_images(Path(data) if data else None)
    folder, out = Path(options.images), Path(options.out)
    refuse_out_inside_inputs(out, [folder, *(Path(example.path) for example in examples)])
    images = limited(list(images_in(folder).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    category = CATEGORY if options.category is None else options.category
    job = prepare_synthesis(gallery, examples, client, category=category)
    refuse_other_contents(out, job.identity, force=options.force)
    return _dry_run(job, client) if options.dry_run else _build(job, client, options, sheet)


def _dry_run(job: SynthesisJob, client: ModelClient) -> int:
    from sightline.builders.synthesize import instruction_requests

    print_line(f"images                      {len(job.images):,}")
    print_line(f"  dropped: {len(job.dropped):,}")
    estimate_requests(instruction_requests(job, client), client, ", of three images each")
    return 0


def _build(job: SynthesisJob, client: ModelClient, options: argparse.Namespace, sheet: Path | None) -> int:
    from sightline.builders.preview import draw_lines
    from sightline.builders.reply_retries import unanswered_reasons
    from sightline.builders.synthesize import TABLE, preview_lines, synthesize, write_instructions

    out = Path(options.out)
    with client.store() as store:
        results = asyncio.run(synthesize(job, client, store, show_progress=not options.quiet))
    unanswered = unanswered_reasons(results)
    print_requests(client)
    lines = preview_lines(job, results)
    if lines or not unanswered:
        manifest = write_instructions(job, results, out, force=options.force)
        print_line(f"{out / TABLE}: {manifest.groups:,} instructions with responses; let humans accept them:")
        print_line(f"  sightline annotate new verify {out / TABLE} --name synthetic")
        print_by_reason(manifest.dropped)
        if sheet is not None:
            print_missing_characters(draw_lines(lines, out, sheet, seed=0))
            print_line(f"  preview: {sheet}")
    return request_exit_status(client, unanswered, f"{len(job.images):,} images", "instruction")
