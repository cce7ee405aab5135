"""`sightline build perturb`: images as they are, and changed in one way that the papers have not."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import add_building, add_sources, make, sources_of
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.builders.sources import SourceItem

SUMMARY = "images as they are and changed in one way: crop, jpeg, rotate, blur, or a perturbation of yours"

EXAMPLE = """examples:
  sightline build perturb photos --kind jpeg --out compressed --preview sheet.png
  sightline build perturb questions.csv --images photos --kind mirror --plugin mirror.py --out mirrored

mirror.py, a perturbation of your own; a variant's labels break the tables down:
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
    add("--plugin", action="append", default=[], metavar="FILE", help="Python file that adds perturbations")
    add(
        "--prompt",
        metavar="TEXT",
        help="what is asked where a source has no question (default: MM-R3's about the place); {question} in "
        "it stands for the source's question, which else is asked alone",
    )
    add_building(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Build the folder; returns the exit status."""
    from sightline.builders.perturb import Perturb, named
    from sightline.formats.digests import file_digest
    from sightline.prompts import load

    plugins = tuple(str(Path(file).absolute()) for file in options.plugin)
    how = named(options.kind, plugins)
    prompt = (
        load("sightline.benchmarks.mmr3")["restyling"]["prompt"] if options.prompt is None else options.prompt
    )
    sources = sources_of(options)
    _refuse_unasked(sources, prompt)
    settings = {
        "perturbation": options.kind,
        "variants": dict(how.variants),
        "prompt": prompt,
        "plugins": [{"file": Path(file).name, "sha256": file_digest(file)} for file in plugins],
    }
    work = Perturb(options.kind, prompt, options.seed, options.format, plugins)
    return make(options, sources, work, kind="perturb", settings=settings, each=1 + len(how.variants))


def _refuse_unasked(sources: list[SourceItem], prompt: str) -> None:
    """Raise UserError where a source would be asked nothing."""
    for source in sources:
        if not source.question and (not prompt.strip() or "{question}" in prompt):
            raise UserError(
                "has no question",
                file=source.image,
                record=source.id,
                expected="a question, or a --prompt that needs none",
            )
