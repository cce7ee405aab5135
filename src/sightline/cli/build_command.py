"""`sightline build KIND`: finds the builder; only the one that is run is imported."""

from __future__ import annotations

import argparse
import importlib

from sightline.errors import unknown_name

KINDS = {
    "rephrase": "ask a chat model for three rephrasings of every question",
    "restyle": "pictures in candy, mosaic, udnie and grayscale, or in styles of yours",
    "mask": "three maskings of one object a picture, from COCO's instances",
    "perturb": "any other perturbation of pictures: crop, jpeg, rotate, blur, or your own",
    "scenes": "drawn scenes in the layouts of the benchmarks, for the embedded model `mini`",
    "caption": "say what is in pictures, by a model that takes pictures (CODIS)",
    "equivalence": "how far what was built means the same as its original",
}

EXAMPLE = """example:
  sightline build restyle photos --out restyled --preview sheet.png
  sightline build KIND --help

What is built is a folder with groups.jsonl, images/ and manifest.json. `sightline run mmr3:rephrasing`,
`mmr3:restyling` or `mmr3:context --data FOLDER` asks a model about what rephrase, restyle or mask made,
`sightline run groups:FOLDER` about any other. scenes draws a data folder a benchmark, caption writes a file,
equivalence measures.
"""


def register(parser: argparse.ArgumentParser, kind: str) -> None:
    """Add the kinds of `build`, with the options of the one that is run."""
    if kind and not kind.startswith("-") and kind not in KINDS:
        raise unknown_name("kind to build", kind, KINDS)
    parser.epilog = EXAMPLE
    parser.set_defaults(execute=lambda _: _list_kinds(parser))
    kinds = parser.add_subparsers(title="kinds", metavar="KIND")
    for name, summary in KINDS.items():
        child = kinds.add_parser(
            name,
            help=summary,
            description=summary,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == kind:
            module = importlib.import_module(f"sightline.cli.build_{name}")
            child.description = module.SUMMARY
            module.register(child)


def _list_kinds(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0
