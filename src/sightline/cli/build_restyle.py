"""`sightline build restyle`: images in the styles of MM-R3, or in styles of the user's own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sightline.cli.build_options import add_building, add_sources, limited, make, sources_of
from sightline.errors import UserError

SUMMARY = "images in candy, mosaic, udnie and grayscale (MM-R3, image restyling), or in styles of yours"

EXAMPLE = """examples:
  sightline build restyle indoor/Images --out restyled --preview sheet.png
  sightline build restyle train.csv --images landmarks --labels train_label_to_category.csv --out restyled
  sightline build restyle photos --size original,224,640,1024 --out sizes
  sightline build restyle photos --style candy --style my/waves.pth --out two

The weights of candy, mosaic and udnie come from `sightline data pull styles`; any others are a state dict of
the network of pytorch/examples fast_neural_style, named by path. grayscale alone needs neither weights nor
torch. A process takes up to 2 GB at the default --max-pixels; fewer pixels or --processes take less.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build restyle`."""
    parser.epilog = EXAMPLE
    add_sources(parser)
    styles = parser.add_argument_group("styles")
    add = styles.add_argument
    add(
        "--style",
        action="append",
        metavar="NAME|PATH",
        help="candy, mosaic, udnie, grayscale, or a file of weights; may repeat (default: those four)",
    )
    add(
        "--size",
        metavar="N[,...]",
        help="resize to squares of N pixels a side first; 'original' for the image's own size; each size "
        "is a group of its own, ID@N, and a label",
    )
    add("--weights", metavar="DIR", help="where candy, mosaic and udnie lie (default ./data/styles)")
    add(
        "--max-pixels",
        type=int,
        metavar="N",
        help="scale larger images down to N pixels first, which `facts` then say (default 4,000,000)",
    )
    add(
        "--device",
        metavar="NAME",
        help="where networks run: cpu, cuda (default: cuda where there is one, with --processes 1)",
    )
    add_building(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Build the folder; returns the exit status."""
    from sightline.builders import restyle
    from sightline.data.styles import STYLES_FOLDER

    most = restyle.MAX_PIXELS if options.max_pixels is None else options.max_pixels
    if most < 1:
        raise UserError("--max-pixels is too small", found=most, expected="1 or more")
    sizes = _sizes(options.size, most)
    folder = Path(options.weights) if options.weights else STYLES_FOLDER
    styles = restyle.find_styles(options.style or restyle.STYLES, folder)
    sources = limited(sources_of(options), options)
    restyle.refuse_clashes(sources, sizes, styles)
    runs = restyle.runs_on(styles, options.device)
    work = restyle.Restyle(styles, sizes, restyle.prompt(), options.format, most, runs.get("device", "cpu"))
    settings: dict[str, Any] = {
        "styles": {style.name: style.sha256 for style in styles},
        "sizes": list(sizes),
        "max_pixels": most,
        "prompt": work.prompt,
        **runs,
    }
    each = len(sizes or (0,)) * (1 + len(styles))
    # A second process on a GPU needs its memory once more, and gains little.
    processes = None if work.device == "cpu" else 1
    return make(options, sources, work, kind=restyle.KIND, settings=settings, each=each, processes=processes)


def _sizes(words: str | None, most: int) -> tuple[int, ...]:
    """Sides in pixels, 0 for the original size; empty where none is asked for."""
    if words is None:
        return ()
    sizes = []
    for word in words.split(","):
        size = 0 if word == "original" else int(word) if word.isascii() and word.isdecimal() else -1
        if size < 1 and word != "original":
            raise UserError("--size is wrong", found=word, expected="original, or pixels a side such as 224")
        if size * size > most:
            raise UserError(f"--size {size} is more than {most:,} pixels", expected="a larger --max-pixels")
        if size in sizes:
            raise UserError(f"--size names {word} twice", expected="each size once")
        sizes.append(size)
    return tuple(sizes)
