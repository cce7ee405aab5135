"""What answered probes cost: a cached run, a report, a score and a comparison, by processor time a probe.

    python perf/path.py [--short] [--against CHECKOUT] [--only NAME ...] [--json FILE]

Whole processes; the model is `baseline/chance`, whose answers are in the store before anything is measured.
CHECKOUT is another checkout, whose src is measured with the libraries of this Python: each command runs in
both, one after the other, each on a store of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from growth import lines
from process_usage import ProcessUsage, run_python
from report import Report, new_parser

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("SIGHTLINE_SHARED") or HERE.parents[1] / "shared")
COLUMNS = ("command", "wall", "processor", "microseconds of it a probe", "peak MB")
AGAINST_COLUMNS = ("of the other: microseconds a probe", "peak MB", "processor, this / other")


class Work(NamedTuple):
    """Probes: the words of `run` that name them, given a folder, and their number."""

    name: str
    task: Callable[[Path], list[str]]
    probes: int
    repeats: int = 1


def groups(folder: Path, size: int) -> list[str]:
    """A groups file of questions with six options each."""
    file = folder / "groups.jsonl"
    with file.open("w", encoding="utf-8") as target:
        target.writelines(json.dumps(line) + "\n" for line in lines(size))
    return [f"groups:{file}"]


def released(task: str, data: str) -> list[str]:
    return [task, "--data", str(SHARED / "data" / data)]


WORKS = (
    Work("groups of four with options", lambda folder: groups(folder, 100_000), 100_000),
    Work("II-Bench, no image, 40 repeats", lambda _: released("iibench:no-image", "iibench"), 1399, 40),
    Work("CODIS pairs, 142 repeats", lambda _: released("codis", "codis"), 706, 142),
)
SHORT = (
    Work("groups of four with options", lambda folder: groups(folder, 1_000), 1_000),
    Work("CODIS pairs, 2 repeats", lambda _: released("codis", "codis"), 706, 2),
)


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="few probes")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="measure this checkout, too")
    parser.add_argument("--only", nargs="*", default=[], help="sets whose name contains one of these")
    options = parser.parse_args()
    checkouts = [HERE.parent, *([options.against.resolve()] if options.against else [])]
    for checkout in checkouts:
        run_python(["-m", "compileall", "-q", str(checkout / "src")])
    report = Report()
    report.table("", *COLUMNS, *(AGAINST_COLUMNS if options.against else ()))
    for work in SHORT if options.short else WORKS:
        if not options.only or any(one in work.name for one in options.only):
            with tempfile.TemporaryDirectory() as folder:
                _measure(work, Path(folder), checkouts, report)
    if options.against:
        report.note(f"The other is commit {_commit(options.against)}.")
    report.save(options.json)


def _measure(work: Work, folder: Path, checkouts: Sequence[Path], report: Report) -> None:
    """Add the rows of one set of probes: each command in every checkout, one after the other."""
    task = work.task(folder)
    probes = work.probes * work.repeats
    run = ["run", *task, "--model", "baseline/chance", "--repeats", str(work.repeats), "--quiet"]
    if work.repeats > 1:
        run += ["--gen", "temperature=1"]
    sides = []
    for number in range(len(checkouts)):
        own = folder / str(number)
        own.mkdir()
        store = ["--store", str(own / "store.db")]
        answers = own / "answers.jsonl"
        sides.append(
            {
                "first run": [*run, *store, "--out", str(own / "results")],
                "cached run": [*run, *store, "--out", str(own / "results")],
                "report": ["report", *store],
                "run of another seed": [*run, *store, "--seed", "1"],
                "compare": ["compare", "1", "3", *store],
                "score": ["score", task[0], str(answers), *task[1:], "--store", str(own / "scores.db")],
            }
        )
    for name in sides[0]:
        usages = []
        for number, (checkout, commands) in enumerate(zip(checkouts, sides, strict=True)):
            words = ["-m", "sightline", *commands[name]]
            usages.append(run_python(words, checkout / "src"))
            if name == "cached run":
                (folder / str(number) / "results" / "answers.jsonl").rename(
                    folder / str(number) / "answers.jsonl"
                )
        if name not in ("first run", "run of another seed"):
            _add_row(report, f"{name}, {work.name}", usages, probes)


def _add_row(report: Report, name: str, usages: Sequence[ProcessUsage], probes: int) -> None:
    own, *others = usages
    cells = [f"{own.wall:.1f} s", f"{own.cpu:.1f} s", f"{1e6 * own.cpu / probes:.0f}", f"{own.memory:.0f}"]
    for other in others:
        cells += [f"{1e6 * other.cpu / probes:.0f}", f"{other.memory:.0f}", f"{own.cpu / other.cpu:.2f}"]
    report.row(name, *cells)


def _commit(checkout: Path) -> str:
    words = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
