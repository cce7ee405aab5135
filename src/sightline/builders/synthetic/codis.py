"""CODIS in small: data.json and images/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from sightline.builders.scenes.draw import png
from sightline.builders.scenes.puzzles import KINDS
from sightline.builders.scenes.puzzles.puzzle import Composed, posed
from sightline.builders.scenes.wording import held_out
from sightline.builders.synthetic.folder import json_of, write


def draw_codis(folder: Path, *, pairs: int = 42, seed: int = 0) -> Path:
    """Draw `pairs` CODIS-like pairs, as many of every kind of image; returns the folder.

    The same seed gives the same bytes. Raises UserError where the folder holds something else.
    """
    random = Random(f"codis {seed}")
    images: dict[str, bytes] = {}
    records: list[dict[str, Any]] = []
    while len(records) < pairs:
        composed = kept(KINDS[len(images) % len(KINDS)], random)
        name = f"scene-{len(images):03}.png"
        images[name] = png(composed.scene)
        for puzzle in composed.puzzles[: pairs - len(records)]:
            pair = posed(puzzle, random)
            records.append(
                {
                    "id": f"{len(records):03}",
                    "image_id": name,
                    "question": pair.question,
                    "context": dict(zip(("context_1", "context_2"), pair.contexts, strict=True)),
                    "answer": dict(zip(("answer_1", "answer_2"), pair.answers, strict=True)),
                    "category": pair.category,
                }
            )
    files = {f"images/{name}": content for name, content in images.items()}
    return write(folder, {"data.json": json_of(records), **files})


def kept(kind: Callable[[Random], Composed], random: Random) -> Composed:
    """An image of that kind whose combination of attributes is kept for tests."""
    while True:
        composed = kind(random)
        if all(held_out(puzzle.mix) for puzzle in composed.puzzles):
            return composed
