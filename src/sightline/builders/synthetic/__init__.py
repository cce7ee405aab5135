"""Small synthetic data sets in the released formats of four benchmarks: the data of the quickstart.

Everything that they ask about is held out from the training of the embedded model: combinations of
attributes, layouts, and a part of the phrasings (`scenes.phrasings`).
"""

from __future__ import annotations

from sightline.builders.synthetic.codis import generate_codis
from sightline.builders.synthetic.contextual import generate_contextual
from sightline.builders.synthetic.iibench import generate_iibench
from sightline.builders.synthetic.mmr3 import generate_mmr3

__all__ = ["generate_codis", "generate_contextual", "generate_iibench", "generate_mmr3"]
