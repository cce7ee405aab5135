"""`sightline adapter SUBCOMMAND`: train adapters, report their effect, describe them."""

from __future__ import annotations

import argparse

from sightline.cli.subcommands import add_subcommands

SUBCOMMANDS = {
    "train": "train an adapter on groups of perturbed images or questions",
    "report": "compare runs with and without an adapter, as in Table 6 of MM-R3",
    "show": "describe an adapter, or the size of one for a model",
}

EXAMPLE = """examples:
  sightline build restyle photos --out train
  sightline adapter train --model hf/llava-hf/llava-1.5-7b-hf --data train --out adapter
  sightline run mmr3:restyling --model hf/llava-hf/llava-1.5-7b-hf --data data/mmr3 \\
      --model-arg adapter=adapter
"""


def register(parser: argparse.ArgumentParser, subcommand: str) -> argparse.ArgumentParser:
    """Add the subcommands; returns the parser of the chosen one."""
    parser.epilog = EXAMPLE
    return add_subcommands(parser, "adapter", SUBCOMMANDS, subcommand)
