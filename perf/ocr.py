"""`build read` against RapidOCR in a plain loop: whole processes, the images of II-Bench.

    python perf/ocr.py [--limit N] [--rounds N] [--short]

The plain loop reads one image after the other with RapidOCR's defaults, all threads of onnxruntime
included, and writes the words. `build read` runs in one process with all threads, and in two processes
with half of them each, every time on an empty store; then once more on the last store. Prints seconds for
an image, processor seconds for an image, peak memory of the largest process, and whether all runs read the
same words. Loading the models is included. CI runs `--short`: 8 images, one round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from process_usage import ProcessUsage, run_python
from report import Report, new_parser

SHARED = Path(os.environ.get("SIGHTLINE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
IMAGES = SHARED / "data/iibench/images"


def main() -> None:
    """Measure and print; with --plain, run the plain loop in this process."""
    parser = new_parser(__doc__)
    parser.add_argument("--limit", type=int, default=100, help="images that are read")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the median is printed")
    parser.add_argument("--short", action="store_true", help="8 images, one round")
    parser.add_argument("--plain", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    limit, rounds = (8, 1) if options.short else (options.limit, options.rounds)
    chosen = sorted(path for path in IMAGES.rglob("*") if path.is_file())[:limit]
    if options.plain:
        _plain_loop(chosen, Path(options.plain))
        return
    report = Report()
    _measure(chosen, rounds, ["--short"] if options.short else ["--limit", str(limit)], report)
    report.save(options.json)


def _plain_loop(images: list[Path], out: Path) -> None:
    from rapidocr import RapidOCR

    engine = RapidOCR(params={"Global.log_level": "critical"})
    with out.open("w", encoding="utf-8") as file:
        for path in images:
            output: Any = engine(path)
            words = [{"text": text} for text in output.txts or ()]
            print(json.dumps({"image_id": str(path), "words": words}), file=file)


def _measure(images: list[Path], rounds: int, size: list[str], report: Report) -> None:
    cores = os.cpu_count() or 1
    kinds = {
        f"RapidOCR in a loop, {cores} threads": [],
        f"`build read`, one process, {cores} threads": ["1", str(cores)],
        f"`build read`, two processes, {max(1, cores // 2)} threads each": ["2", str(max(1, cores // 2))],
    }
    times: dict[str, list[ProcessUsage]] = {kind: [] for kind in [*kinds, "again, from the store"]}
    texts: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        out, store = Path(folder, "read.jsonl"), Path(folder, "store.db")
        for _ in range(rounds):
            for kind, arguments in kinds.items():
                store.unlink(missing_ok=True)
                words = [__file__, "--plain", str(out), *size]
                if arguments:
                    words = _build_read(images, out, store, *arguments)
                times[kind].append(run_python(words))
                texts[kind] = _texts(out)
            times["again, from the store"].append(run_python(_build_read(images, out, store, "1", "1")))
    columns = ("seconds an image", "processor seconds an image", "peak MB of the largest process")
    report.table(f"{len(images)} images of II-Bench, rounds: {rounds}", "", *columns)
    for kind, ran in times.items():
        wall, cpu, memory = (statistics.median(part) for part in zip(*ran, strict=True))
        each, worked = wall / len(images), cpu / len(images)
        report.row(kind, f"{each:.3f}", f"{worked:.3f}", f"{memory:.0f}")
    first, *others = texts.values()
    same = all(one == first for one in others)
    report.note("All read the same words." if same else "The words differ.")


def _build_read(images: list[Path], out: Path, store: Path, processes: str, threads: str) -> list[str]:
    words = ["-m", "sightline", "build", "read", *map(str, images), "--out", str(out), "--force", "--quiet"]
    return [*words, "--store", str(store), "--processes", processes, "--threads", threads]


def _texts(out: Path) -> set[str]:
    """The words of each image in any order, because the loop sorts them differently."""
    lines = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    return {
        f"{line['image_id']} {sorted(' '.join(word['text'].split()) for word in line['words'])}"
        for line in lines
    }


if __name__ == "__main__":
    main()
