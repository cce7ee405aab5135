"""`sightline check`: ask a model a few questions with known answers before it is evaluated."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_options, add_plugins, add_printing, pairs

EXAMPLE = """examples:
  sightline check http://localhost:8000/v1#llava
  sightline check gpt-4o --model-arg detail=low --format json

Some 30 requests: does the model see images, upright, and keep them apart under equal text; how small may
text be; does it keep temperature 0, seeds, max_tokens and stop; does it answer in parallel as alone.
Nothing is stored. Exit status 1: it does not see images, or mixes them up, or answers nothing.
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("model", metavar="MODEL", help="as in `sightline run --model`")
    add_options(parser, ["model_arg", "config"])
    add_printing(parser, by=False)
    add_plugins(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print a table with a row for each thing that was asked."""
    import asyncio
    import time

    from sightline.cli.printing import plain_table, print_tables
    from sightline.config import load_config
    from sightline.engine.server_check import check_server
    from sightline.models.registry import ModelOptions, resolve

    config = load_config(options.config)
    model, *_ = resolve(options.model, ModelOptions(config, pairs(options.model_arg, "--model-arg")))
    began = time.monotonic()
    check = asyncio.run(check_server(model))
    rows = [(one.what, one.state, one.evidence) for one in check.findings]
    note = f"{check.asked} questions in {time.monotonic() - began:.0f} s; nothing is stored"
    print_tables([plain_table(model.name, ("the model", "", "found"), rows, [note])], options.format)
    return 1 if any(one.is_fault for one in check.findings) else 0
