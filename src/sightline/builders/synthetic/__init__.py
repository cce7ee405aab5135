"""Small drawn data sets in the released layouts of four benchmarks: the data of the quickstart.

What they ask about is kept from the training of the embedded model: combinations of attributes, layouts, and
a part of the wordings (`scenes.wording`).
"""

from __future__ import annotations

from sightline.builders.synthetic.codis import draw_codis
from sightline.builders.synthetic.contextual import draw_contextual
from sightline.builders.synthetic.iibench import draw_iibench
from sightline.builders.synthetic.mmr3 import draw_mmr3

__all__ = ["draw_codis", "draw_contextual", "draw_iibench", "draw_mmr3"]
