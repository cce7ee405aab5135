"""The index of outcomes: the time to build it, its bytes, and the time of each query of a page.

    python perf/outcome_index.py [--short] [--sizes N ...] [--folder DIR]

The groups files and the model are those of growth.py: groups of four probes, answered at once by
`baseline/chance`. For each size, a run as a whole process gives the time to compare with; then the index is
built in this process. A query is repeated with other arguments; the table has the median and the 95th
percentile. Nothing is cached before the first query.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median, quantiles

from growth import SUBJECTS, lines
from process_usage import run_python
from sightline.engine.store import Store
from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.types import GroupPage

HERE = Path(__file__).resolve().parent
SIZES = (1_400, 100_000)
REPEATS = 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="only 1,400 probes")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of probes")
    parser.add_argument("--folder", type=Path, help="make the temporary folders here")
    options = parser.parse_args()
    for size in SIZES[:1] if options.short else options.sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            _measure(size, Path(folder))


def _measure(size: int, folder: Path) -> None:
    groups, path = folder / "groups.jsonl", folder / "s.db"
    with groups.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines(size))
    run = ["-m", "sightline", "run", f"groups:{groups}", "--model", "baseline/chance", "--quiet"]
    usage = run_python([*run, "--store", str(path)], HERE.parent / "src")
    store = Store.open(str(path))
    before = _bytes(path)
    index = OutcomeIndex(store)
    began = time.perf_counter(), time.process_time()
    index.build(1)
    wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    print(f"\n{size:,} probes: a run takes {usage.wall:.1f} s ({usage.cpu:.1f} s of processor time)")
    added = (_bytes(path) - before) / size
    print(f"index: {wall:.1f} s ({cpu:.1f} s of processor time), {added:.0f} bytes a probe")
    before, began = _bytes(path), (time.perf_counter(), time.process_time())
    assert index.groups(1, GroupFilter(search="ladder")).total
    wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    print(
        f"first search: {wall:.1f} s ({cpu:.1f} s), {(_bytes(path) - before) / size:.0f} bytes a probe\n\n"
        "| query | first ms | median ms | p95 ms |\n| --- | ---: | ---: | ---: |"
    )
    for name, query in _queries(OutcomeIndex(store), size // 4).items():
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            query()
            times.append(1000 * (time.perf_counter() - start))
        p95 = quantiles(times, n=20)[-1]
        print(f"| {name} | {times[0]:.1f} | {median(times):.1f} | {p95:.1f} |", flush=True)
    store.close()


def _queries(index: OutcomeIndex, groups: int) -> dict[str, Callable[[], object]]:
    """Each query with arguments that change."""
    random = Random(1)
    subjects = _endless(SUBJECTS)

    def page(**conditions: object) -> GroupPage:
        return index.groups(1, GroupFilter(**conditions), random.randrange(groups))  # type: ignore[arg-type]

    return {
        "list of runs": index.runs,
        "first page": lambda: index.groups(1),
        "a page anywhere": page,
        "a page of a filter": lambda: page(right="some", consistency="inconsistent"),
        "a page of a label and a filter": lambda: page(right="none", labels=(("domain", "Art"),)),
        "counts of all filters": lambda: index.facets(1, GroupFilter(right="some")),
        "search for a word": lambda: page(search=next(subjects)),
        "search for a number": lambda: page(search=str(random.randrange(groups))),
        "search for a word of all groups": lambda: page(search=f"the {next(subjects)}"),
        "a group": lambda: index.group(1, random.randrange(groups) + 1),
        "its neighbours": lambda: index.neighbours(
            1, random.randrange(groups) + 1, GroupFilter(right="some")
        ),
    }


def _endless(words: tuple[str, ...]) -> Iterator[str]:
    while True:
        yield from words


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob("s.db*"))


if __name__ == "__main__":
    main()
