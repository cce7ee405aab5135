"""Stores with generated runs for the measurement of the viewer: images, two judges, two models.

Up to REAL probes, `sightline run` makes the runs. In a larger store, their indexes hold each group several
times: the pages read indexes only.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import msgspec
import numpy as np
from PIL import Image
from sqlalchemy import select

from growth import VARIANTS, lines
from process_usage import ProcessUsage, run_python
from sightline.store import schema
from sightline.store.store import Store
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_builder import BLOCK, BODY, ORDER_BLOCK, IndexBody
from sightline.viewer.index_types import all_ranks, decode_ranks, encode_ranks, integers_to_bytes

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


def multiply_groups(store: Store, run: int, copies: int) -> None:
    """Let the index of a run hold each group several times: the copies of a group follow it in the order.

    Its words and comparisons are dropped.

    Args:
        store: The store.
        run: The number of an indexed run. Groups after its last full block are left out.
        copies: How often each group is there.
    """
    old = OutcomeIndex(store).open(run)
    blocks = old.groups // BLOCK
    kept = blocks * BLOCK
    order = np.array(old.numbers)[np.array(old.numbers) < kept]
    places = np.empty(kept, np.int64)
    places[order] = np.arange(kept)
    offsets = np.arange(copies)
    numbers = (order[:, None] + kept * offsets).ravel()
    ranks = np.empty(kept * copies, np.int64)
    ranks[numbers] = np.arange(kept * copies)

    def multiplied(body: bytes) -> tuple[int, bytes]:
        of_old = [old.numbers[rank] for rank in all_ranks(decode_ranks(body, old.groups))]
        found = places[[number for number in of_old if number < kept]]
        several = (found[:, None] * copies + offsets).ravel().tolist()
        return len(several), encode_ranks(several, kept * copies)

    result = msgspec.structs.replace(old.result, samples=kept * copies, probes=kept * copies * VARIANTS)
    body = IndexBody(kept * copies, msgspec.json.encode(result), old.awaited)
    table, orders, facets = schema.blocks, schema.orders, schema.facets
    with store.database.core_write() as connection:
        connection.exec_driver_sql(f"DROP TABLE {schema.WORDS}_{old.id}")
        connection.execute(table.delete().where(table.c.index_id == old.id, table.c.block >= blocks))
        for copy in range(1, copies):
            first = table.select().where(table.c.index_id == old.id, table.c.block < blocks)
            moved = first.with_only_columns(
                table.c.index_id, table.c.block + copy * blocks, table.c.rows, table.c.lines
            )
            connection.execute(table.insert().from_select(list(table.c), moved))
        connection.execute(orders.delete().where(orders.c.index_id == old.id))
        for start in range(0, kept * copies, ORDER_BLOCK):
            end = start + ORDER_BLOCK
            row = (numbers[start:end].tolist(), ranks[start:end].tolist())
            encoded = dict(zip(("numbers", "ranks"), map(integers_to_bytes, row), strict=True))
            connection.execute(orders.insert().values(index_id=old.id, block=start // ORDER_BLOCK, **encoded))
        for key, ranks_of in connection.execute(
            select(facets.c.key, facets.c.ranks).where(facets.c.index_id == old.id)
        ).all():
            groups, encoded_ranks = multiplied(bytes(ranks_of))
            of_key = facets.update().where(facets.c.index_id == old.id, facets.c.key == key)
            connection.execute(of_key.values(groups=groups, ranks=encoded_ranks))
        compared = schema.comparisons
        connection.execute(
            compared.delete().where((compared.c.base == old.id) | (compared.c.other == old.id))
        )
        of_index = schema.indexes.update().where(schema.indexes.c.id == old.id)
        connection.execute(of_index.values(body=BODY.encode(body)))
