"""`sightline adapter KIND`: finds what is to be done with adapters; only that is imported."""

from __future__ import annotations

import argparse

from sightline.cli.kinds import add_kinds

KINDS = {
    "train": "train one on groups of perturbed images or questions",
    "report": "the runs with one against those without, as Table 6 of MM-R3",
    "show": "what one is, and how large one would be for a model",
}

EXAMPLE = """examples:
  sightline build restyle photos --out train
  sightline adapter train --model hf/llava-hf/llava-1.5-7b-hf --data train --out adapter
  sightline run mmr3:restyling --model hf/llava-hf/llava-1.5-7b-hf --adapter adapter --data data/mmr3
"""


def register(parser: argparse.ArgumentParser, kind: str) -> None:
    """Add what can be done, with the options of that which is."""
    parser.epilog = EXAMPLE
    add_kinds(parser, "adapter", KINDS, kind, "thing to do with adapters")
