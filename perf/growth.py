"""How time, memory and bytes on disk grow with the number of probes: whole processes, no server.

    python perf/growth.py [--short] [--sizes N ...] [--package PATH] [--folder DIR]

A seeded generator writes a groups file of each size. For each size, a new store gets a first run, the same
run again (all answers cached), and a report of it. The model is `baseline/chance`, which answers at once, so
the time is Sightline's own. Each row of the table is printed when it is measured.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from process_usage import ProcessUsage, run_python
from report import Report, new_parser

HERE = Path(__file__).resolve().parent
SIZES = (1_000, 10_000, 100_000, 1_000_000)
VARIANTS = 4
COLUMNS = ("command", "wall", "processor", "peak MB", "store bytes a probe", "results bytes a probe")

INSTRUCTION = (
    "Please answer the multiple choice question below based on the description. "
    "There is one correct answer. Reply with its letter in brackets."
)
QUESTIONS = (
    "What does the author want to say with {thing} in this place?",
    "Which of these is the message behind {thing}?",
    "The author shows {thing}. What is meant by it?",
    "Why did the author choose {thing} for this scene?",
)
SUBJECTS = ("haste", "patience", "greed", "hope", "routine", "envy", "courage", "silence", "pride", "doubt")
CLAIMS = (
    "{subject} costs more than it gives",
    "{subject} is seldom seen by those who have it",
    "without {subject} nothing changes",
    "{subject} of one person becomes that of all",
    "it criticises {subject} in a society that rewards it",
)
THINGS = (
    "a lamp",
    "a ladder",
    "an empty chair",
    "a clock",
    "a bridge",
    "a mirror",
    "a kite",
    "a locked door",
)
LABELS = ("Art", "Environment", "Life", "Politics", "Society")


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="only 1,000 probes")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of probes")
    parser.add_argument(
        "--package",
        type=Path,
        default=HERE.parent,
        help="the checkout whose src is measured (default: this one)",
    )
    parser.add_argument("--folder", type=Path, help="make the temporary folders here")
    options = parser.parse_args()
    source = options.package.resolve() / "src"
    run_python(["-m", "compileall", "-q", str(source)])
    report, usages = Report(), []
    report.table("", *COLUMNS)
    for size in SIZES[:1] if options.short else options.sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            usages.append((size, _measure(size, Path(folder), source, report)))
    if len(usages) > 1:
        _add_slopes(report, usages)
    report.save(options.json)


def _measure(size: int, folder: Path, source: Path, report: Report) -> dict[str, ProcessUsage]:
    """Measure one size; returns the usage of each command."""
    groups, results = folder / "groups.jsonl", folder / "results"
    with groups.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines(size))
    store = ["--store", str(folder / "s.db")]
    run = ["run", f"groups:{groups}", "--model", "baseline/chance", "--out", str(results), "--quiet"]
    usages: dict[str, ProcessUsage] = {}
    for name, words in (("first run", run), ("cached run", run), ("report", ["report", "--by", "domain"])):
        usages[name] = run_python(["-m", "sightline", *words, *store], source)
        _add_row(report, size, name, usages[name], folder)
    counted = json.loads((results / "metrics.json").read_bytes())["probes"]
    assert counted == size, f"the results have {counted} probes instead of {size}"
    return usages


def _add_row(report: Report, size: int, name: str, usage: ProcessUsage, folder: Path) -> None:
    store = sum(file.stat().st_size for file in folder.glob("s.db*"))
    results = sum(file.stat().st_size for file in (folder / "results").iterdir())
    used = (f"{usage.wall:.2f} s", f"{usage.cpu:.2f} s", f"{usage.memory:.0f}")
    report.row(f"{name}, {size:,} probes", *used, f"{store / size:,.0f}", f"{results / size:,.0f}")


def _add_slopes(report: Report, usages: Sequence[tuple[int, dict[str, ProcessUsage]]]) -> None:
    """The slopes of each command between the sizes, in logarithms: 1 is proportional growth."""
    pairs = list(pairwise(usages))
    spans = [f"{small:,} to {large:,}" for (small, _), (large, _) in pairs]
    report.table("Slopes in logarithms: 1 is proportional growth, 0 is none", "slope", *spans)
    for name in usages[0][1]:
        for what in ("cpu", "memory"):
            slopes = [
                math.log(getattr(after[name], what) / getattr(before[name], what)) / math.log(large / small)
                for (small, before), (large, after) in pairs
            ]
            shown = "processor time" if what == "cpu" else "peak memory"
            report.row(f"{name}, {shown}", *(f"{slope:.2f}" for slope in slopes))


def lines(size: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Lines of a groups file: in a group, four questions about one scene, with shuffled options."""
    random = Random(seed)
    for number in range(size):
        if number % VARIANTS == 0:
            scene, claims = _scene(number // VARIANTS, random), _claims(random)
            thing, domain = random.choice(THINGS), random.choice(LABELS)
        options = random.sample(claims, len(claims))
        listed = "\n".join(f"({letter}) {option}" for letter, option in zip("ABCDEF", options, strict=True))
        question = QUESTIONS[number % VARIANTS].format(thing=thing)
        yield {
            "group": f"scene-{number // VARIANTS}",
            "variant": f"v{number % VARIANTS + 1}",
            "prompt": f"{INSTRUCTION}\n\n{scene}\n\nQuestion: {question}\n{listed}\nAnswer:",
            "question": question,
            "options": options,
            "references": [claims[0]],
            "labels": {"domain": domain},
        }


def _scene(number: int, random: Random) -> str:
    place, *others = random.sample(THINGS, 3)
    return (
        f"Scene {number}. Two people stand beside {place}; {random.randint(2, 99)} others pass {others[0]}. "
        f"One of them points at {others[1]} and speaks of {random.choice(SUBJECTS)}."
    )


def _claims(random: Random) -> list[str]:
    """Six different claims, the first of which is right."""
    subjects = random.sample(SUBJECTS, 6)
    return [random.choice(CLAIMS).format(subject=subject) for subject in subjects]


if __name__ == "__main__":
    main()
