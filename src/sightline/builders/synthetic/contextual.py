"""Synthetic ConTextual data: contextual_val.csv with responses, contextual_test.csv without, and images/."""

from __future__ import annotations

from pathlib import Path
from random import Random

from sightline.benchmarks.contextual.folder import ANSWER, COLUMNS, table_name
from sightline.builders.scenes.boards import BOARDS
from sightline.builders.scenes.phrasings import is_held_out
from sightline.builders.scenes.render import render_png
from sightline.builders.synthetic.folder import write_folder
from sightline.formats.tables import csv_bytes


def generate_contextual(folder: Path, *, questions: int = 60, val: int = 60, seed: int = 0) -> Path:
    """Generate ConTextual-like questions, equally many of every kind of image.

    The column `image_url` holds paths, images/NAME.

    Args:
        seed: The same seed gives the same bytes.
    """
    random = Random(f"contextual {seed}")
    files: dict[str, bytes] = {}
    for split, count in (("val", val), ("test", questions)):
        rows: list[tuple[str, ...]] = []
        while len(rows) < count:
            board = BOARDS[len(rows) % len(BOARDS)](random)
            facts = [fact for fact in board.facts if is_held_out(fact.combination)]
            if not facts:
                continue
            name = f"images/{split}-{len(rows) + 1:03}.png"
            files[name] = render_png(board.scene)
            fact = random.choice(facts)
            rows.append((name, fact.questions.choose_for_test(random), fact.answer, board.category))
        files[table_name(split)] = _csv(rows, responses=split == "val")
    return write_folder(folder, files)


def _csv(rows: list[tuple[str, ...]], *, responses: bool) -> bytes:
    columns = [number for number, name in enumerate(COLUMNS) if responses or name != ANSWER]
    return csv_bytes([row[number] for number in columns] for row in (COLUMNS, *rows))
