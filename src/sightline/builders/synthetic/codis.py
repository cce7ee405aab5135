"""Synthetic CODIS data: data.json and images/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from sightline.builders.scenes.phrasings import is_held_out
from sightline.builders.scenes.puzzles import KINDS
from sightline.builders.scenes.puzzles.puzzle import PuzzleImage, pose
from sightline.builders.scenes.render import render_png
from sightline.builders.synthetic.folder import json_bytes, write_folder


def generate_codis(folder: Path, *, pairs: int = 42, seed: int = 0) -> Path:
    """Generate CODIS-like pairs, equally many of every kind of image.

    Args:
        seed: The same seed gives the same bytes.
    """
    random = Random(f"codis {seed}")
    images: dict[str, bytes] = {}
    records: list[dict[str, Any]] = []
    while len(records) < pairs:
        image = _held_out_image(KINDS[len(images) % len(KINDS)], random)
        name = f"scene-{len(images):03}.png"
        images[name] = render_png(image.scene)
        for puzzle in image.puzzles[: pairs - len(records)]:
            pair = pose(puzzle, random)
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
    return write_folder(folder, {"data.json": json_bytes(records), **files})


def _held_out_image(kind: Callable[[Random], PuzzleImage], random: Random) -> PuzzleImage:
    """A random image whose combinations of attributes are held out for tests."""
    while True:
        image = kind(random)
        if all(is_held_out(puzzle.combination) for puzzle in image.puzzles):
            return image
