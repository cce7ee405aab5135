"""Scoring collected answers to multiple choice, beside other tools: whole processes, no server.

    python perf/scoring.py [--short] [--size N] [--beside N] [--peer TOOL=PYTHON ...] [--json FILE]

The questions are those of growth.py. A seeded generator answers them: three of five rightly, as "(B)", as
"The answer is B.", as "ANSWER: B" or with the text of the option. Each tool gets the answers as its own log
and scores them with its own reader; its accuracy shows what it read. Writing the logs is not measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from growth import lines
from peer_options import read_peers
from peers import version
from process_usage import ProcessUsage, run_python
from report import Report, new_parser

HERE = Path(__file__).resolve().parent
FORMS = ("({letter})", "The answer is {letter}.", "ANSWER: {letter}", "{text}")
RIGHT = 0.6
OWN = "sightline"
TOOLS = ("inspect_ai", "lmms_eval")


class Scored(NamedTuple):
    """What a process used, and the accuracy that it counted."""

    usage: ProcessUsage
    accuracy: float


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="only 1,000 answers")
    parser.add_argument("--size", type=int, default=100_000, help="answers that Sightline scores alone")
    parser.add_argument("--beside", type=int, default=5_000, help="answers that each tool scores")
    parser.add_argument("--peer", action="append", default=[], metavar="TOOL=PYTHON")
    options = parser.parse_args()
    pythons = {OWN: sys.executable, **read_peers(options.peer)}
    beside = 1_000 if options.short else options.beside
    report = Report()
    report.table("", "tool", "answers", "wall", "processor s per 1,000 answers", "peak MB", "accuracy, %")
    with tempfile.TemporaryDirectory() as folder:
        for tool in (OWN, *TOOLS):
            if tool in pythons:
                _measure(tool, pythons[tool], beside, Path(folder), report)
            else:
                report.note(f"{tool} is not measured: its environment was not given (--peer {tool}=PYTHON).")
        if not options.short:
            _measure(OWN, pythons[OWN], options.size, Path(folder), report)
    report.save(options.json)


def _measure(tool: str, python: str, size: int, folder: Path, report: Report) -> None:
    given = folder / "answers.jsonl"
    with given.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in answered(size))
    (wall, cpu, memory), accuracy = _score(tool, python, given)
    report.row(
        tool if tool == OWN else f"{tool} {version(tool, python)}",
        f"{size:,}",
        f"{wall:.1f} s",
        f"{cpu * 1000 / size:.3f} s",
        f"{memory:.0f}",
        f"{100 * accuracy:.1f}",
    )


def answered(size: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Lines of growth.py with responses."""
    random = Random(seed)
    for line in lines(size, seed):
        options = line["options"]
        right = options.index(line["references"][0])
        wrong = [position for position in range(len(options)) if position != right]
        chosen = right if random.random() < RIGHT else random.choice(wrong)
        response = random.choice(FORMS).format(letter="ABCDEF"[chosen], text=options[chosen])
        yield {**line, "response": response}


def _score(tool: str, python: str, given: Path) -> Scored:
    """Write the log of a tool, and let it score; only this is measured."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if tool == OWN:
            results = folder / "results"
            words = ["score", f"groups:{given}", "--store", str(folder / "s.db"), "--out", str(results)]
            usage = run_python(["-m", "sightline", *words, "--quiet"])
            metrics = json.loads((results / "metrics.json").read_bytes())["metrics"]
            (value,) = (one["value"] for one in metrics if (one["metric"], one["subset"]) == ("acc", "all"))
            return Scored(usage, value / 100)
        driver = str(HERE / "peer_drivers" / f"{tool}_scoring.py")
        _run(python, driver, "write", str(given), name)
        usage = run_python([driver, "score", str(given), name], python=python, folder=folder)
        return Scored(usage, float(_run(python, driver, "accuracy", str(given), name).split()[-1]))


def _run(python: str, *words: str) -> str:
    ran = subprocess.run([python, *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {ran.stderr.strip()}")
    return ran.stdout


if __name__ == "__main__":
    main()
