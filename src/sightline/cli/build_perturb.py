"""`sightline build perturb`: applies a perturbation to images: crop, jpeg, rotate, blur, or a plugin's."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import add_building, add_sources, make, sources_of
from sightline.cli.options import add_plugins
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.builders.sources import SourceItem

SUMMARY = "perturb images: crop, jpeg, rotate, blur, or a perturbation of your own"

EXAMPLE = """examples:
  sightline build perturb photos --kind jpeg --out compressed --preview sheet.png
  sightline build perturb questions.csv --images photos --kind mirror --plugin mirror.py --out mirrored

mirror.py, a perturbation of your own; the labels of a variant become subsets of the metrics:
  from PIL import ImageOps

  class Mirror:
      name = "mirror"
      variants = {"mirrored": {"mirror": "yes"}}

      def apply(self, image, variant, random):
          return ImageOps.mirror(image)

  perturbations = {"mirror": Mirror}
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build perturb`."""
    parser.epilog = EXAMPLE
    add_sources(parser)
    add = parser.add_argument
    add("--kind", required=True, metavar="NAME", help="crop, jpeg, rotate, blur, or one of a plugin's")
    add(
        "--prompt",
        metavar="TEXT",
        help="prompt for sources without a question (default: MM-R3's about the place); if it contains "
        "{question}, it is the prompt for all sources, with their question in that position",
    )
    add_plugins(parser)
    add_building(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Build the folder; returns the exit status."""
    from sightline.builders.perturb import Perturb, load_perturbation
    from sightline.builders.run import BuildSpec
    from sightline.formats.digests import file_digest
    from sightline.prompts import load

    plugins = tuple(str(Path(file).absolute()) for file in options.plugin)
    perturbation = load_perturbation(options.kind, plugins)
    prompt = (
        load("sightline.benchmarks.mmr3")["restyling"]["prompt"] if options.prompt is None else options.prompt
    )
    sources = sources_of(options)
    _refuse_missing_questions(sources, prompt)
    digests = {file: file_digest(file) for file in plugins}
    settings = {
        "perturbation": options.kind,
        "variants": dict(perturbation.variants),
        "prompt": prompt,
        "plugins": [{"file": Path(file).name, "sha256": digests[file]} for file in plugins],
    }
    maker = Perturb(options.kind, prompt, options.seed, options.format, plugins)
    images = 1 + len(perturbation.variants)
    spec = BuildSpec(kind="perturb", settings=settings, images_per_source=images, files=digests)
    return make(options, sources, maker, spec)


def _refuse_missing_questions(sources: list[SourceItem], prompt: str) -> None:
    for source in sources:
        if not source.question and (not prompt.strip() or "{question}" in prompt):
            raise UserError(
                "has no question",
                file=source.image,
                record=source.id,
                expected="a question, or a --prompt that needs none",
            )
