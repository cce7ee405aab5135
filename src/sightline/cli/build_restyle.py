"""`sightline build restyle`: repaints images in the styles of MM-R3, or in your own styles."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sightline.cli.build_options import add_building, add_sources, limited, make, sources_of
from sightline.errors import UserError

SUMMARY = "restyle images: candy, mosaic, udnie and grayscale (MM-R3), or your own styles"

EXAMPLE = """examples:
  sightline build restyle indoor/Images --out restyled --preview sheet.png
  sightline build restyle train.csv --images landmarks --labels train_label_to_category.csv --out restyled
  sightline build restyle photos --size original,224,640,1024 --out sizes
  sightline build restyle photos --out restyled --on ray
  sightline build restyle photos --style candy --style my/waves.pth --out two

`sightline data pull styles` downloads the weights of candy, mosaic and udnie. Your own style is a state dict
of the network of pytorch/examples fast_neural_style, named by path. grayscale needs neither weights nor
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
        help="resize to squares of N pixels per side first; 'original' keeps the size; each size has its own "
        "group, ID@N, and a label",
    )
    add(
        "--weights",
        metavar="DIR",
        help="folder of the weights of candy, mosaic and udnie (default: ./data/styles)",
    )
    add(
        "--max-pixels",
        type=int,
        metavar="N",
        help="first scale larger images down to N pixels, recorded in `facts` (default: 4,000,000)",
    )
    add(
        "--device",
        metavar="NAME",
        help="device of the networks: cpu, cuda (default: cuda if there is one, with --processes 1)",
    )
    add_building(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Build the folder; returns the exit status."""
    from sightline.builders import restyle
    from sightline.builders.run import BuildSpec
    from sightline.data.styles import STYLES_FOLDER

    most = restyle.MAX_PIXELS if options.max_pixels is None else options.max_pixels
    if most < 1:
        raise UserError("--max-pixels is too small", found=most, expected="1 or more")
    sizes = _sizes(options.size, most)
    folder = Path(options.weights) if options.weights else STYLES_FOLDER
    styles = restyle.find_styles(options.style or restyle.STYLES, folder)
    sources = limited(sources_of(options), options)
    restyle.refuse_equal_names(sources, sizes, styles)
    runs = restyle.device_versions(styles, options.device)
    device = runs.get("device", "cpu")
    maker = restyle.Restyle(styles, sizes, restyle.prompt(), options.format, most, device)
    settings: dict[str, Any] = {
        "styles": {style.name: style.sha256 for style in styles},
        "sizes": list(sizes),
        "max_pixels": most,
        "prompt": maker.prompt,
        **runs,
    }
    images = len(sizes or (0,)) * (1 + len(styles))
    # A second process doubles the memory on a GPU and gains little.
    processes = None if device == "cpu" else 1
    files = {style.weights: style.sha256 for style in styles if style.weights}
    spec = BuildSpec(kind=restyle.KIND, settings=settings, images_per_source=images, files=files)
    return make(options, sources, maker, spec, processes, gpus=int(device != "cpu"))


def _sizes(words: str | None, most: int) -> tuple[int, ...]:
    """Sides in pixels, 0 for the original size; empty without --size."""
    if words is None:
        return ()
    sizes = []
    for word in words.split(","):
        size = 0 if word == "original" else int(word) if word.isascii() and word.isdecimal() else -1
        if size < 1 and word != "original":
            raise UserError(
                "--size is wrong", found=word, expected="original, or pixels per side such as 224"
            )
        if size * size > most:
            raise UserError(f"--size {size} is more than {most:,} pixels", expected="a larger --max-pixels")
        if size in sizes:
            raise UserError(f"--size names {word} twice", expected="each size once")
        sizes.append(size)
    return tuple(sizes)
