"""Stores with generated runs for the measurement of the viewer: images, two judges, two models.

Up to REAL probes, `sightline run` makes the runs. A larger store holds these groups several times, under
other names: its indexes are written by the package's own IndexBuilder from judged groups, and the runs have
no requests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random

import msgspec
from PIL import Image

from growth import VARIANTS, lines
from process_usage import ProcessUsage, run_python
from sightline.engine.store import Store
from sightline.judging.panel import JudgedGroup
from sightline.outcome_index.builder import IndexBuilder
from sightline.outcome_index.group_detail import read_lines
from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.index_key import index_key
from sightline.results.judged_run import group_of_lines
from sightline.types import Outcome, Verdict

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


def copy_runs(folder: Path, copies: int) -> None:
    """Replace the store by one with each group several times. The indexes are complete.

    Args:
        folder: The folder of `make_runs`; its runs are indexed.
        copies: How often each group is there.
    """
    source, target = Store.open(str(folder / "s.db")), Store.open(str(folder / "copies.db"))
    OutcomeIndex(target)
    index = OutcomeIndex(source)
    digests = _digests(folder)
    for number in (1, BASE, OTHER):
        body, _ = source.runs.get(number)
        run = target.runs.start(body)
        target.runs.finish(run, body)
        opened = index.open(number)
        builder = IndexBuilder(target, run, index_key(target, run), opened.groups * copies, digests)
        for copy in range(copies if number > 1 else 1):
            everything = zip(opened.facts(), opened.lines(range(1, opened.groups + 1)), strict=True)
            for facts, stored in everything:
                builder.add(_copied(facts.sample, *read_lines(stored), copy))
        result = opened.result
        builder.finish(
            msgspec.structs.replace(result, samples=result.samples * copies, probes=result.probes * copies)
        )
    source.close()
    target.close()
    for file in folder.glob("s.db*"):
        file.unlink()
    (folder / "copies.db").rename(folder / "s.db")


def _copied(sample: str, outcomes: Sequence[Outcome], verdicts: Sequence[Verdict], copy: int) -> JudgedGroup:
    """A group under another name, as if its answers were other ones."""
    keys = {one.key: hashlib.sha256(f"{one.key}/{copy}".encode()).hexdigest() for one in outcomes}
    name = f"{sample}-{copy}"
    answers = [msgspec.structs.replace(one, key=keys[one.key], sample=name, group=name) for one in outcomes]
    judgements = [
        msgspec.structs.replace(one, targets=tuple(keys[target] for target in one.targets))
        for one in verdicts
    ]
    return JudgedGroup(group_of_lines((name, 0, ""), answers, judgements, "first"), judgements)


def _digests(folder: Path) -> Callable[[Iterable[Outcome]], dict[str, Sequence[str]]]:
    known = {
        f"images/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (folder / "images").iterdir()
    }
    return lambda outcomes: {one.key: [known[path] for path in one.images] for one in outcomes}
