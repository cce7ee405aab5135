"""ConTextual in small: contextual_val.csv with responses, contextual_test.csv without, and images/."""

from __future__ import annotations

from pathlib import Path
from random import Random

from sightline.benchmarks.contextual.folder import ANSWER, COLUMNS, table_name
from sightline.builders.scenes.boards import BOARDS
from sightline.builders.scenes.draw import png
from sightline.builders.scenes.wording import held_out
from sightline.builders.synthetic.folder import write
from sightline.formats.tables import csv_bytes


def draw_contextual(folder: Path, *, questions: int = 60, val: int = 60, seed: int = 0) -> Path:
    """Draw ConTextual-like questions, as many of every kind of image; `image_url` is images/NAME.

    The same seed gives the same bytes. Raises UserError where the folder holds something else.
    """
    random = Random(f"contextual {seed}")
    files: dict[str, bytes] = {}
    for split, count in (("val", val), ("test", questions)):
        rows: list[tuple[str, ...]] = []
        while len(rows) < count:
            board = BOARDS[len(rows) % len(BOARDS)](random)
            asked = [fact for fact in board.facts if held_out(fact.mix)]
            if not asked:
                continue
            name = f"images/{split}-{len(rows) + 1:03}.png"
            files[name] = png(board.scene)
            fact = random.choice(asked)
            rows.append((name, fact.questions.tested(random), fact.answer, board.category))
        files[table_name(split)] = _csv(rows, responses=split == "val")
    return write(folder, files)


def _csv(rows: list[tuple[str, ...]], *, responses: bool) -> bytes:
    kept = [number for number, name in enumerate(COLUMNS) if responses or name != ANSWER]
    return csv_bytes([row[number] for number in kept] for row in (COLUMNS, *rows))
