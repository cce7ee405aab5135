"""The viewer on a large store: the cost of the index, and the time of each page to its first byte.

    python perf/pages.py [--short] [--sizes N ...] [--folder DIR]

The data are those of growth.py, with images (viewer_store.py). For each size, the index of a run is built in
this process; then `sightline serve` runs as a process of its own, and each page is visited over loopback,
with other arguments each time. The table has the first visit, median and 95th percentile of the others, and
their mean processor time in the server (from /proc, so on Linux only): other work changes it less.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from statistics import median, quantiles
from urllib.parse import urlsplit

from growth import SUBJECTS
from report import Report, new_parser
from sightline.store.store import Store
from sightline.viewer.addresses import group_address
from sightline.viewer.index import OutcomeIndex
from viewer_store import BASE, IMAGES, OTHER, REAL, SOURCE, make_runs, multiply_groups, write_data

SIZES = (100_000, 1_000_000)
SHORT = 1_400
VISITS = 40

GROUPS = 500
"""The groups of which one is visited."""

Addresses = Callable[[], str]
"""Makes the address of the next visit."""


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help=f"only {SHORT:,} probes")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of probes")
    parser.add_argument("--folder", type=Path, help="make the temporary folders here")
    options = parser.parse_args()
    report = Report()
    for size in (SHORT,) if options.short else options.sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            _measure(size, Path(folder), report)
    report.save(options.json)


def _measure(size: int, folder: Path, report: Report) -> None:
    copies, real = max(1, size // REAL), min(size, REAL)
    write_data(real, folder)
    usage = make_runs(folder)
    report.table(f"What pages of {size:,} probes need first", "", "wall", "processor", "bytes a probe")
    report.row(f"a run of {real:,} probes", f"{usage.wall:.1f} s", f"{usage.cpu:.1f} s", "")
    _index(folder, real, report)
    if copies > 1:
        multiply_groups(folder / "s.db-index" / f"{BASE}.db", copies)
    measure_pages(size, folder, report)


def _index(folder: Path, size: int, report: Report) -> None:
    """Build what is not built, and print what it takes."""
    store = Store.open(str(folder / "s.db"))
    index = OutcomeIndex(store)
    index.build(1)
    index.build(BASE)
    _step(report, "index", folder, size, lambda: index.build(OTHER))
    _step(report, "comparison of two runs", folder, size, lambda: index.compare(BASE, OTHER))
    store.close()


def _step(report: Report, name: str, folder: Path, size: int, work: Callable[[], object]) -> None:
    before, began = _bytes(folder), (time.perf_counter(), time.process_time())
    work()
    wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    added = (_bytes(folder) - before) / size
    report.row(name, f"{wall:.1f} s", f"{cpu:.1f} s", f"{added:.0f}")


def measure_pages(size: int, folder: Path, report: Report) -> None:
    """Visit each page, and print the table.

    Args:
        size: The number of probes.
        folder: The folder with the store and the data.
        report: Gets the table.
    """
    store = Store.open(str(folder / "s.db"))
    index = OutcomeIndex(store)
    addresses = _addresses(index, index.open(BASE).groups)
    store.close()
    title = f"Pages of {size:,} probes"
    report.table(title, "page", "first visit", "median", "p95", "processor", "KB")
    with _served(folder) as (server, connection, cookie):
        for name, address in addresses.items():
            first, _ = _visit(connection, address(), cookie)
            before = _processor_seconds(server)
            visits = [_visit(connection, address(), cookie) for _ in range(VISITS)]
            used = (_processor_seconds(server) - before) / VISITS
            times = [seconds for seconds, _ in visits]
            figures = [1000 * one for one in (first, median(times), quantiles(times, n=20)[-1], used)]
            kilobytes = median(length for _, length in visits) / 1000
            report.row(name, *(f"{one:.0f} ms" for one in figures), f"{kilobytes:.0f}")


def _processor_seconds(process: int) -> float:
    """What a running process has used; see proc(5)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _addresses(index: OutcomeIndex, groups: int) -> dict[str, Addresses]:
    """The pages, with arguments that change."""
    random = Random(1)
    run, compared = f"/runs/{BASE}", f"/compare?run={BASE}&run={OTHER}"
    listed = f"{run}/groups"
    shown = index.open(BASE).rows(range(1, min(groups, IMAGES) + 1))
    digests = [row.image.digest for row in shown if row.image]
    drawn = sorted(random.sample(range(1, groups + 1), min(groups, GROUPS)))
    keys = [row.key for row in index.open(BASE).rows(drawn)]

    def anywhere() -> int:
        return random.randrange(groups) + 1

    comparisons = {
        "comparison": lambda: compared,
        "comparison, anywhere in a list": lambda: f"{compared}&show=lost&after={anywhere()}",
    }
    return {
        "leaderboard": lambda: "/",
        "runs": lambda: "/runs",
        "a run": lambda: run,
        "groups": lambda: listed,
        "groups, anywhere in the list": lambda: f"{listed}?after={anywhere()}",
        "groups of a filter and a label": lambda: f"{listed}?right=none&label.domain=Art&after={anywhere()}",
        "groups with a word": lambda: f"{listed}?search={random.choice(SUBJECTS)}",
        "groups with a number": lambda: f"{listed}?search={anywhere()}",
        "groups with two words, one of all": lambda: f"{listed}?search=the+{random.choice(SUBJECTS)}",
        "a group": lambda: group_address(random.choice(keys), BASE),
        "a group in a filtered list": lambda: group_address(random.choice(keys), BASE, "right=none"),
        "export of a filter, its beginning": lambda: f"{run}/answers.jsonl?right=all",
        "choice of runs to compare": lambda: "/compare",
        **(comparisons if index.comparison(BASE, OTHER) else {}),
        "choice of runs with judges": lambda: "/judges",
        "judges": lambda: f"/judges?run={BASE}",
        "data": lambda: "/data",
        "a data set": lambda: "/data/0",
        "a data set, anywhere": lambda: f"/data/0?after={(anywhere() - 1) // 48 * 48}",
        "a thumbnail": lambda: f"{run}/thumbnails/{random.choice(digests)}",
        "an image": lambda: f"{run}/images/{random.choice(digests)}",
    }


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("s.db-index/*"))


@contextmanager
def _served(folder: Path) -> Iterator[tuple[int, HTTPConnection, str]]:
    """`sightline serve` in a process of its own: its number, a connection, and the cookie of the token."""
    command = ["-m", "sightline", "serve", "--port", "0", "--data", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(
        [sys.executable, *command, "--store", str(folder / "s.db")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        url = urlsplit(process.stdout.readline().split()[-1])
        connection = HTTPConnection(url.netloc, timeout=600)
        connection.request("GET", f"/?{url.query}")
        response = connection.getresponse()
        response.read()
        yield process.pid, connection, str(response.headers["set-cookie"]).partition(";")[0]
        connection.close()
    finally:
        process.terminate()
        process.wait()


def _visit(connection: HTTPConnection, address: str, cookie: str) -> tuple[float, int]:
    """The seconds to the first byte, and the bytes of the page; of an export, those of its beginning."""
    began = time.perf_counter()
    connection.request("GET", address, headers={"cookie": cookie})
    response = connection.getresponse()
    body = response.read(1)
    seconds = time.perf_counter() - began
    if response.status != 200:
        raise SystemExit(f"{address}: status {response.status}: {response.read()[:2000].decode()}")
    if address.partition("?")[0].endswith(".jsonl"):
        connection.close()  # The rest of an export is not read.
        return seconds, len(body)
    return seconds, len(body + response.read())


if __name__ == "__main__":
    main()
