"""`build read` beside RapidOCR in a plain loop: whole processes, the images of II-Bench.

    python perf/ocr.py [--limit N] [--rounds N] [--short]

The plain loop reads one image after the other with RapidOCR as it comes, all threads of onnxruntime
included, and writes the words. `build read` runs in one process with all threads and in two with half of them
each, each time on an empty store, then once more on the store of the last. Prints seconds an image, how long
a core works at one, peak memory of the largest process, and whether all found the same words. Loading the
models is in all of it. `--short`, which CI runs, reads 8 images once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

SHARED = Path(os.environ.get("SIGHTLINE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
IMAGES = SHARED / "data/iibench/images"


class Ran(NamedTuple):
    """A finished process: wall and processor seconds, peak memory in MB of its largest process."""

    wall: float
    cpu: float
    memory: float


def main() -> None:
    """Measure and print; or, in a process of its own, be the plain loop."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    _measure(chosen, rounds, ["--short"] if options.short else ["--limit", str(limit)])


def _plain_loop(images: list[Path], out: Path) -> None:
    from rapidocr import RapidOCR

    engine = RapidOCR(params={"Global.log_level": "critical"})
    with out.open("w", encoding="utf-8") as file:
        for path in images:
            found: Any = engine(path)
            words = [{"text": text} for text in found.txts or ()]
            print(json.dumps({"image_id": str(path), "words": words}), file=file)


def _measure(images: list[Path], rounds: int, size: list[str]) -> None:
    cores = os.cpu_count() or 1
    kinds = {
        f"RapidOCR in a loop, {cores} threads": [],
        f"one process, {cores} threads": ["1", str(cores)],
        f"two processes, {max(1, cores // 2)} threads each": ["2", str(max(1, cores // 2))],
    }
    times: dict[str, list[Ran]] = {kind: [] for kind in [*kinds, "once more, all known"]}
    texts: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        out, store = Path(folder, "read.jsonl"), Path(folder, "store.db")
        for _ in range(rounds):
            for kind, given in kinds.items():
                store.unlink(missing_ok=True)
                words = [__file__, "--plain", str(out), *size]
                if given:
                    words = _build_read(images, out, store, *given)
                times[kind].append(_run(words))
                texts[kind] = _texts(out)
            times["once more, all known"].append(_run(_build_read(images, out, store, "1", "1")))
    for kind, ran in times.items():
        wall, cpu, memory = (statistics.median(part) for part in zip(*ran, strict=True))
        each, worked = wall / len(images), cpu / len(images)
        print(f"{kind:<36}{each:>8.3f} s an image{worked:>8.3f} s of a core{memory:>7.0f} MB")
    first, *others = texts.values()
    print("all found the same words" if all(one == first for one in others) else "the words found differ")


def _build_read(images: list[Path], out: Path, store: Path, processes: str, threads: str) -> list[str]:
    words = ["-m", "sightline", "build", "read", *map(str, images), "--out", str(out), "--force", "--quiet"]
    return [*words, "--store", str(store), "--processes", processes, "--threads", threads]


def _texts(out: Path) -> set[str]:
    """What was read, by image: the words in any order, since the loop sorts them in its own."""
    lines = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    return {
        f"{line['image_id']} {sorted(' '.join(word['text'].split()) for word in line['words'])}"
        for line in lines
    }


def _run(words: list[str]) -> Ran:
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} failed ({process.returncode})")
    return Ran(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
