"""How time, memory and bytes on disk grow with the number of probes: whole processes, no server.

    python perf/growth.py [--short] [--sizes N ...] [--package PATH] [--folder DIR]

A seeded generator writes a groups file of each size. For each size, a new store gets a first run, the same
run again (all answers cached), and a report of it. The model is `baseline/chance`, which answers at once, so
the time is Sightline's own. Each row of the table is printed when it is measured.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from process_usage import ProcessUsage, run_python

HERE = Path(__file__).resolve().parent
SIZES = (1_000, 10_000, 100_000, 1_000_000)
VARIANTS = 4

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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    print("| probes | command | wall s | processor s | peak MB | store bytes/probe | results bytes/probe |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for size in SIZES[:1] if options.short else options.sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            _measure(size, Path(folder), source)


def _measure(size: int, folder: Path, source: Path) -> None:
    groups, results = folder / "groups.jsonl", folder / "results"
    with groups.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines(size))
    store = ["--store", str(folder / "s.db")]
    run = ["run", f"groups:{groups}", "--model", "baseline/chance", "--out", str(results), "--quiet"]
    for name, words in (("first run", run), ("cached run", run), ("report", ["report", "--by", "domain"])):
        usage = run_python(["-m", "sightline", *words, *store], source)
        _print(size, name, usage, folder)
    counted = json.loads((results / "metrics.json").read_bytes())["probes"]
    assert counted == size, f"the results have {counted} probes instead of {size}"


def _print(size: int, name: str, usage: ProcessUsage, folder: Path) -> None:
    store = sum(file.stat().st_size for file in folder.glob("s.db*"))
    results = sum(file.stat().st_size for file in (folder / "results").iterdir())
    print(
        f"| {size:,} | {name} | {usage.wall:.2f} | {usage.cpu:.2f} | {usage.memory:.0f} "
        f"| {store / size:,.0f} | {results / size:,.0f} |",
        flush=True,
    )


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
