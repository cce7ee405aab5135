"""`sightline build scenes`: synthetic scenes in the released formats, for the embedded model `mini`."""

from __future__ import annotations

import argparse
from pathlib import Path

from sightline.errors import UserError
from sightline.output import print_line, print_note

SUMMARY = "generate synthetic scenes in the formats of the four benchmarks, for the embedded model `mini`"

EXAMPLE = """examples:
  sightline build scenes --out scenes
  sightline build scenes --benchmark mmr3 --for-training --count 400 --seed 7 --out train
  sightline run mmr3:restyling --model mini --data scenes/mmr3

The same seed makes the same scenes; a finished folder is checked and left as it is. Every scene contains a
combination that is not in the training set of `mini`. Scenes for training an adapter contain none of these
combinations, so that it does not learn the test answers. The styles of MM-R3's scenes are fixed image
operations with the names of the paper's styles, not its networks (`build restyle`).
"""

BENCHMARKS = ("codis", "iibench", "mmr3", "contextual")
COUNT = 60


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build scenes`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("--out", required=True, metavar="DIR", help="folder, with a subfolder for each benchmark")
    add(
        "--benchmark",
        action="append",
        choices=BENCHMARKS,
        help="generate scenes for this benchmark only; may repeat (default: all four)",
    )
    add(
        "--count",
        type=int,
        default=COUNT,
        metavar="N",
        help=f"pairs of CODIS, questions per split, groups per task (default: {COUNT})",
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of all random choices (default: 0)")
    training = "with --benchmark mmr3: generate scenes for training an adapter; they are never used in a test"
    add("--for-training", action="store_true", help=training)
    add("--force", action="store_true", help="replace a folder with other settings")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Make the scenes; returns the exit status."""
    from sightline.builders.synthetic import (
        generate_codis,
        generate_contextual,
        generate_iibench,
        generate_mmr3,
    )
    from sightline.builders.synthetic.build import build_once

    count, seed, out = options.count, options.seed, Path(options.out)
    if count < 1:
        raise UserError("--count is too small", found=count, expected="1 or more")
    if options.for_training and options.benchmark != ["mmr3"]:
        raise UserError("--for-training needs MM-R3's scenes", expected="--benchmark mmr3")
    generators = {
        "codis": lambda folder: generate_codis(folder, pairs=count, seed=seed),
        "iibench": lambda folder: generate_iibench(folder, questions=count, dev=count, seed=seed),
        "mmr3": lambda folder: generate_mmr3(
            folder, groups=count, seed=seed, held_out=not options.for_training
        ),
        "contextual": lambda folder: generate_contextual(folder, questions=count, val=count, seed=seed),
    }
    for name in options.benchmark or BENCHMARKS:
        settings = {"benchmark": name, "count": count, "seed": seed, "for_training": options.for_training}
        built = build_once(out / name, settings, generators[name], force=options.force)
        print_line(str(out / name))
        if not built:
            print_note(f"{out / name}: finished before, left as it is")
    return 0
