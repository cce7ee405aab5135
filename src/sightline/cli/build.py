"""`sightline build SUBCOMMAND`: the builders, in the chapters of images and of questions."""

from __future__ import annotations

from sightline.cli import build_images, build_questions

EXAMPLE = """example:
  sightline build restyle photos --out restyled
  sightline build SUBCOMMAND --help

A built folder holds groups.jsonl, images/ and manifest.json. Evaluate what rephrase, restyle and mask build
with `sightline run mmr3:rephrasing`, `mmr3:restyling` or `mmr3:context --data FOLDER`, and any other groups
with `sightline run groups:FOLDER`. `sightline serve --data FOLDER` shows the groups. reword, caption and read
write a file; equivalence measures; curate, synthesize and split make your own data sets. What humans write,
verify, rate and compare is in projects of `sightline annotate`.
"""

SUBCOMMANDS = {
    "rephrase": (
        build_questions.register_rephrase,
        "write three rephrasings of each question with a chat model (MM-R3)",
    ),
    "reword": (
        build_questions.register_reword,
        "reword the questions of a groups file: typos, case, negation, option orders, languages",
    ),
    "restyle": (
        build_images.register_restyle,
        "restyle images: candy, mosaic, udnie and grayscale (MM-R3), or your own styles",
    ),
    "mask": (
        build_images.register_mask,
        "mask an object of each COCO image in three ways (MM-R3, context reasoning)",
    ),
    "perturb": (
        build_images.register_perturb,
        "perturb images: crop, jpeg, rotate, blur, or a perturbation of your own",
    ),
    "caption": (
        build_images.register_caption,
        "caption images with a model, for text-only models (CODIS, section 5.1)",
    ),
    "read": (
        build_images.register_read,
        "read the text in images by OCR, word by word with boxes (ConTextual, section 3.1)",
    ),
    "equivalence": (
        build_questions.register_equivalence,
        "measure whether variants mean the same as originals: by humans, a judge, similarity",
    ),
    "curate": (
        build_questions.register_curate,
        "select raw images: drop near-duplicates, filter by amount of text (II-Bench, ConTextual)",
    ),
    "synthesize": (
        build_questions.register_synthesize,
        "write instructions with responses for images, with a model (ConTextual, Appendix H)",
    ),
    "split": (
        build_questions.register_split,
        "sample a validation split in proportion to the categories (ConTextual, Appendix C)",
    ),
}
