"""The engine against a bare client: whole processes, the 1,399 II-Bench images, one local server.

    python perf/engine.py [--short] [--rounds N] [--only NAME ...] [--json FILE]

Prints for each scenario both wall times, their ratio, the share of refused calls, processor seconds for 1,000
probes, and peak memory: medians over the rounds. The ratio is the median of the rounds' ratios, not the ratio
of the medians. Compare ratios: wall times differ between machines and runs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sightline
from process_usage import ProcessUsage, run_python
from report import Report, new_parser
from sightline.engine.check_rule import CLOSED

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("SIGHTLINE_SHARED") or HERE.parents[1] / "shared")
PROBES = 1399
COLUMNS = (
    "scenario",
    "bare client",
    "sightline",
    "ratio",
    "refused",
    "processor s per 1,000 probes",
    "peak MB",
    "aim",
)


class Scenario(NamedTuple):
    """A server, the parallel calls of each client, and the target ratio.

    Short runs vary most between rounds: they have `repeats` times as many.
    """

    name: str
    server: tuple[str, ...]
    bare_concurrency: int
    concurrency: int
    aim: str
    repeats: int = 1


REALISTIC = ("--latency-ms", "500", "--latency-sigma", "0.99")
FAILING = ("--fail-rate", "0.05", "--fail-codes", "500")
SCENARIOS = (
    Scenario("instant", (), 64, 64, "ratio at most 2.0, processor at most 1.0 s, 200 MB", 7),
    Scenario("constant 200 ms, 64", ("--latency-ms", "200"), 64, 64, "ratio at most 1.05", 5),
    Scenario("realistic, 64", (*REALISTIC, *FAILING), 64, 64, "ratio at most 1.02"),
    Scenario("realistic, 256", (*REALISTIC, *FAILING), 256, 256, "ratio at most 1.02"),
    Scenario(
        "48 at once of 256",
        (*REALISTIC, "--max-inflight", "48", "--retry-after", "1"),
        48,
        256,
        "ratio at most 1.15, at most 10 % refused",
    ),
)


class ClientRun(NamedTuple):
    """A finished client process: what it used, and what the server counted."""

    usage: ProcessUsage
    stats: dict[str, Any]


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="only the server that answers at once")
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds per long scenario; short ones have more"
    )
    parser.add_argument("--only", nargs="*", default=[], help="scenarios whose name contains one of these")
    options = parser.parse_args()
    # Where Python may not write bytecode, each process would compile the modules anew.
    run_python(["-m", "compileall", "-q", str(Path(sightline.__file__).parent)])
    report = Report()
    report.table("", *COLUMNS)
    for scenario in SCENARIOS[:1] if options.short else SCENARIOS:
        if not options.only or any(word in scenario.name for word in options.only):
            _measure(scenario, options.rounds * (1 if options.short else scenario.repeats), report)
    _measure_start(report)
    report.save(options.json)


def _measure(scenario: Scenario, rounds: int, report: Report) -> None:
    bare, ours, cached = [], [], []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            with Server((*scenario.server, "--fail-seed", str(number + 1))) as server:
                bare.append(server.run(bare_command(server.port, scenario.bare_concurrency)))
            with Server((*scenario.server, "--fail-seed", str(number + 1))) as server:
                command = sightline_command(server.port, scenario.concurrency, Path(folder))
                ours.append(server.run(command))
                if not scenario.server:
                    cached.append(server.run(command))
    ratio = statistics.median(
        mine.usage.wall / floor.usage.wall for mine, floor in zip(ours, bare, strict=True)
    )
    sent = statistics.median(run.stats["requests"] for run in ours)
    refused = statistics.median(run.stats["limited"] for run in ours)
    floor = statistics.median(run.usage.wall for run in bare)
    share = f"{100 * refused / sent:.1f} %"
    _add_row(report, [scenario.name, f"{floor:.2f} s"], ours, [f"{ratio:.2f}", share], scenario.aim)
    if cached:
        assert all(run.stats["requests"] <= CLOSED.most_requests for run in cached), (
            "more than the check of the endpoint was sent"
        )
        _add_row(report, ["all cached", ""], cached, ["", ""], "under 1 s")


def _add_row(
    report: Report, before: list[str], ours: Sequence[ClientRun], after: list[str], aim: str
) -> None:
    wall = statistics.median(run.usage.wall for run in ours)
    cpu = statistics.median(run.usage.cpu for run in ours) * 1000 / PROBES
    memory = statistics.median(run.usage.memory for run in ours)
    report.row(*before, f"{wall:.2f} s", *after, f"{cpu:.2f} s", f"{memory:.0f}", aim)


def _measure_start(report: Report) -> None:
    """Measure how long `--help` takes, and check that it imports nothing heavy."""
    command = [sys.executable, "-m", "sightline", "--help"]
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    code = (
        "import sys, sightline.cli.main as m\n"
        "m.build_parser([])\n"
        "heavy = {'torch', 'scipy', 'fastapi', 'sqlalchemy', 'numpy', 'aiohttp'} & set(sys.modules)\n"
        "print(', '.join(sorted(heavy)) or 'nothing heavy')"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    seconds = statistics.median(times)
    report.note(f"`sightline --help` takes {seconds:.2f} s (aim: under 0.25 s) and loads {loaded.strip()}.")


def bare_command(port: int, concurrency: int) -> list[str]:
    """The arguments of Python that run the bare client.

    Args:
        port: The port of the server.
        concurrency: Parallel calls.

    Returns:
        The arguments.
    """
    return [str(HERE / "floor.py"), str(SHARED / "tools"), str(port), str(concurrency)]


def sightline_command(port: int, concurrency: int, folder: Path) -> list[str]:
    """The arguments of Python that run Sightline.

    Args:
        port: The port of the server.
        concurrency: Parallel calls.
        folder: Where the store and the results are written.

    Returns:
        The arguments.
    """
    words = f"run iibench:none --model http://127.0.0.1:{port}/v1#mock --concurrency {concurrency} --quiet"
    places = ["--data", str(SHARED / "data" / "iibench"), "--store", str(folder / "s.db")]
    return ["-m", "sightline", *words.split(), *places, "--out", str(folder / "out")]


class Server:
    """The test server, as a child process at a free port."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def __enter__(self) -> Server:
        script = str(SHARED / "tools" / "mock_openai_server.py")
        self._process = subprocess.Popen(
            [sys.executable, script, "--port", str(_free_port()), *self._words],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port: int = json.loads(self._process.stdout.readline())["listening"]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def run(self, command: list[str], python: str = sys.executable) -> ClientRun:
        """Run a client to its end.

        Args:
            command: The arguments of Python.
            python: The interpreter.

        Returns:
            What the client used, and what the server counted.
        """
        self.reset()
        return ClientRun(run_python(command, python=python), self._get("/stats"))

    def reset(self) -> None:
        """Forget all requests: the next ones get the latencies and failures of first ones."""
        self._get("/reset", b"{}")

    def _get(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", body) as reply:
            found: dict[str, Any] = json.loads(reply.read())
            return found


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
