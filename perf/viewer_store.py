"""Stores with generated runs for the measurement of the viewer: images, two judges, two models.

Up to REAL probes, `sightline run` makes the runs. In a larger store, their indexes hold each group several
times: the pages read indexes only.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
from PIL import Image

from growth import VARIANTS, lines
from process_usage import ProcessUsage, run_python
from sightline.evaluation.folder import Lines
from sightline.store.runs import decompress
from sightline.viewer.index_entry import read_lines
from sightline.viewer.run_index import searched_text, spaced_words

SOURCE = Path(__file__).resolve().parent.parent / "src"
REAL = 100_000
IMAGES = 2_000
RATED = 2_000
"""The groups that a human rates."""

BASE, OTHER = 2, 3
"""The runs of two models over all groups; a human judges answers of the first. Run 1 has the rated groups."""

TASK = ["run", "groups:groups.jsonl", "--model", "baseline/chance", "--quiet", "--store", "s.db"]


def write_data(size: int, folder: Path) -> None:
    """Write a groups file and its images: groups of four probes about one image.

    Args:
        size: The number of probes.
        folder: The folder.
    """
    random = Random(2)
    (folder / "images").mkdir()
    for number in range(IMAGES):
        image = Image.frombytes("RGB", (16, 12), random.randbytes(16 * 12 * 3))
        image.resize((640, 480), Image.Resampling.BICUBIC).save(folder / "images" / f"{number}.jpg")
    with (folder / "groups.jsonl").open("w", encoding="utf-8") as file:
        for number, line in enumerate(lines(size)):
            image_path = f"images/{number // VARIANTS % IMAGES}.jpg"
            file.write(json.dumps({**line, "images": [image_path]}) + "\n")


def make_runs(folder: Path) -> ProcessUsage:
    """Make three runs of a groups file, in `s.db` beside it.

    Args:
        folder: The folder of `write_data`.

    Returns:
        What the run OTHER used.
    """
    run_python(["-m", "sightline", *TASK, "--limit", str(RATED), "--out", "rated"], SOURCE, folder)
    random = Random(3)
    with (folder / "rated/answers.jsonl").open() as answers, (folder / "human.jsonl").open("w") as file:
        for line in answers:
            verdict = "right" if random.random() < 0.3 else "wrong"
            rating = {"targets": [json.loads(line)["key"]], "question": "correct", "verdict": verdict}
            file.write(json.dumps({**rating, "judge": "Ann"}) + "\n")
    judges = ["--judge", "rules", "--judge", "human:human.jsonl"]
    run_python(["-m", "sightline", *TASK, *judges], SOURCE, folder)
    return run_python(["-m", "sightline", *TASK, "--seed", "1"], SOURCE, folder)


def multiply_groups(path: Path, copies: int) -> None:
    """Let the index of a run hold each group several times; it belongs to no comparison any more.

    Args:
        path: The file of the index.
        copies: How often each group is there.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        body = msgspec.json.decode(connection.execute("SELECT body FROM about").fetchone()[0])
        groups = body["groups"]
        for copy in range(1, copies):
            moved = f"number + {copy * groups}"
            first = f"WHERE number <= {groups}"
            connection.execute(
                f"INSERT INTO groups SELECT {moved}, kind, sample, information, length, similarity "
                f"FROM groups {first}"
            )
            connection.execute(
                f"INSERT INTO bodies SELECT {moved}, json_set(row, '$.number', {moved}), answers, verdicts "
                f"FROM bodies {first}"
            )
        for number, answers in connection.execute(
            f"SELECT number, answers FROM bodies WHERE number > {groups}"
        ).fetchall():
            outcomes, _ = read_lines(Lines(decompress(answers), b""))
            row = (number, spaced_words(searched_text(outcomes)))
            connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", row)
        connection.execute(f"UPDATE kinds SET groups = groups * {copies}")
        for facet in body["facets"]:
            for value in facet["values"]:
                value["count"] *= copies
        body |= {"id": f"{copies} times {body['id']}", "groups": groups * copies}
        connection.execute("UPDATE about SET body = ?", (msgspec.json.encode(body).decode(),))
