"""`sightline build KIND`: finds the builder; only the one that is run is imported."""

from __future__ import annotations

import argparse

from sightline.cli.kinds import add_kinds

KINDS = {
    "rephrase": "ask a chat model for three rephrasings of every question",
    "restyle": "images in candy, mosaic, udnie and grayscale, or in styles of yours",
    "mask": "three maskings of one object an image, from COCO's instances",
    "perturb": "any other perturbation of images: crop, jpeg, rotate, blur, or your own",
    "scenes": "drawn scenes in the layouts of the benchmarks, for the embedded model `mini`",
    "caption": "say what is in images, by a model that takes images (CODIS)",
    "read": "say what is written in images, and where, by OCR (ConTextual)",
    "equivalence": "how far what was built means the same as its original",
    "curate": "raw images without copies, and by how much is written in them (II-Bench, ConTextual)",
    "annotate": "a form for annotators, and a data folder of what they filled in (II-Bench)",
    "synthesize": "instructions for images, with responses, by a model that sees them (ConTextual)",
    "verify": "drop what people find wrong in a table (ConTextual, II-Bench)",
    "rate": "answers of several runs for people to rate blind (ConTextual, II-Bench)",
    "split": "a validation split in proportion to the categories (ConTextual)",
}

EXAMPLE = """example:
  sightline build restyle photos --out restyled --preview sheet.png
  sightline build SUBCOMMAND --help

What is built is a folder with groups.jsonl, images/ and manifest.json. `sightline run mmr3:rephrasing`,
`mmr3:restyling` or `mmr3:context --data FOLDER` asks a model about what rephrase, restyle or mask made,
`sightline run groups:FOLDER` about any other. scenes draws a data folder a benchmark, caption and read
write a file, equivalence measures; curate, annotate, synthesize, verify and split make data sets of one's
own; rate lists answers for people.
"""


def register(parser: argparse.ArgumentParser, kind: str) -> argparse.ArgumentParser:
    """Add the subcommands; returns the parser of the chosen one."""
    parser.epilog = EXAMPLE
    return add_kinds(parser, "build", KINDS, kind)
