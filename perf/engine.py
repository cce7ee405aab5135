"""The engine against a bare client: whole processes, the 1,399 II-Bench images, one local server.

    python perf/engine.py [--short] [--rounds N] [--only NAME ...] [--against PYTHON] [--json FILE]

Prints for each scenario both wall times, their ratio, the share of refused calls, processor seconds for 1,000
probes, and peak memory: medians over the rounds. The ratio is the median of the rounds' ratios, not the ratio
of the medians. Compare ratios: wall times differ between machines and runs. In each round the clients run one
after the other, each time in another order.

--against PYTHON measures another version of Sightline in the same rounds: PYTHON is the interpreter of an
environment that has it. Further columns compare this version with it.
"""

from __future__ import annotations

import json
import math
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

from process_usage import ProcessUsage, run_python
from report import Report, new_parser

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
AGAINST_COLUMNS = (
    "other version",
    "its processor s per 1,000 probes",
    "its peak MB",
    "wall, this / other",
    "processor, this / other",
)


NO_CHECK = ("--canary", "off")
"""The bare client does not ask first whether the server keeps images apart: 3 to 33 requests, one by one."""


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
    Scenario("instant", (), 64, 64, "ratio at most 3.0", 7),
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


class Version(NamedTuple):
    """A version of Sightline: the interpreter that has it, its folder, and its name."""

    python: str
    folder: Path
    name: str


class Runs(NamedTuple):
    """The runs of one version in a scenario, a round each; cached ones repeat the run before."""

    first: list[ClientRun]
    cached: list[ClientRun]


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="only the server that answers at once")
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds per long scenario; short ones have more"
    )
    parser.add_argument("--only", nargs="*", default=[], help="scenarios whose name contains one of these")
    parser.add_argument("--against", metavar="PYTHON", help="compare with the version that PYTHON has")
    options = parser.parse_args()
    versions = [_version(sys.executable)]
    if options.against:
        versions.append(_version(options.against))
        if versions[0].folder == versions[1].folder:
            raise SystemExit(f"--against {options.against}: it has the same code, {versions[0].folder}")
    # Where Python may not write bytecode, each process would compile the modules anew.
    for version in versions:
        run_python(["-m", "compileall", "-q", str(version.folder)], python=version.python)
    report = Report()
    report.table("", *COLUMNS, *(AGAINST_COLUMNS if options.against else ()))
    for scenario in SCENARIOS[:1] if options.short else SCENARIOS:
        if not options.only or any(word in scenario.name for word in options.only):
            rounds = options.rounds * (1 if options.short else scenario.repeats)
            _measure(scenario, rounds, versions, report)
    if options.against:
        report.note(
            f"This version is {versions[0].name}; the other one is {versions[1].name}. `this / other` is the "
            "median of the rounds' ratios. In brackets: its order-statistics interval, and the probability "
            "that this holds the true median. With fewer than six rounds, the interval has all ratios, and "
            "the probability is below 95 %."
        )
    _measure_start(report)
    report.save(options.json)


def _version(python: str) -> Version:
    """The version of Sightline that an interpreter imports, where this script looks for it."""
    code = "import sightline; print(sightline.__file__, sightline.__version__, sep='\\n')"
    try:
        found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError as error:
        raise SystemExit(f"there is no program {python}; expected the Python of an environment") from error
    if found.returncode:
        raise SystemExit(f"{python} has no sightline: {found.stderr.strip()}")
    file, number = found.stdout.splitlines()
    folder = Path(file).resolve().parent
    words = ["git", "-C", str(folder), "rev-parse", "--short=9", "HEAD"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    return Version(python, folder, f"{number}, commit {commit}" if commit else number)


def _measure(scenario: Scenario, rounds: int, versions: Sequence[Version], report: Report) -> None:
    bare: list[ClientRun] = []
    runs = [Runs([], []) for _ in versions]
    clients = [None, *range(len(versions))]
    for number in range(rounds):
        turn = number % len(clients)
        for client in (*clients[turn:], *clients[:turn]):
            with (
                tempfile.TemporaryDirectory() as folder,
                Server((*scenario.server, "--fail-seed", str(number + 1))) as server,
            ):
                if client is None:
                    bare.append(server.run(bare_command(server.port, scenario.bare_concurrency)))
                    continue
                more = () if client else NO_CHECK
                command = sightline_command(server.port, scenario.concurrency, Path(folder), *more)
                runs[client].first.append(server.run(command, versions[client].python))
                if not scenario.server:
                    runs[client].cached.append(server.run(command, versions[client].python))
    ours = runs[0]
    ratio = statistics.median(_ratios(ours.first, bare, "wall"))
    sent = statistics.median(run.stats["requests"] for run in ours.first)
    refused = statistics.median(run.stats["limited"] for run in ours.first)
    share = f"{100 * refused / sent:.1f} %"
    cells = [f"{ratio:.2f}", share]
    report.row(*_cells(scenario.name, _median_wall(bare), cells, scenario.aim, [one.first for one in runs]))
    if ours.cached:
        assert not any(run.stats["requests"] for run in ours.cached), "a cached run sent something"
        report.row(*_cells("all cached", "", ["", ""], "at most 1.5 s", [one.cached for one in runs]))


def _cells(
    name: str, bare: str, ratio_and_refused: Sequence[str], aim: str, runs: Sequence[Sequence[ClientRun]]
) -> list[str]:
    """A row: the runs of this version and, if there are any, those of the other one."""
    ours, *others = runs
    cells = [name, bare, _median_wall(ours), *ratio_and_refused, *_processor_and_memory(ours), aim]
    for other in others:
        compared = (_with_interval(_ratios(ours, other, part)) for part in ("wall", "cpu"))
        cells += [_median_wall(other), *_processor_and_memory(other), *compared]
    return cells


def _median_wall(runs: Sequence[ClientRun]) -> str:
    return f"{statistics.median(run.usage.wall for run in runs):.2f} s"


def _processor_and_memory(runs: Sequence[ClientRun]) -> tuple[str, str]:
    cpu = statistics.median(run.usage.cpu for run in runs) * 1000 / PROBES
    return f"{cpu:.2f} s", f"{statistics.median(run.usage.memory for run in runs):.0f}"


def _ratios(ours: Sequence[ClientRun], others: Sequence[ClientRun], part: str) -> list[float]:
    """The ratio of each round, of the times `wall` or `cpu`."""
    pairs = zip(ours, others, strict=True)
    return [getattr(mine.usage, part) / getattr(other.usage, part) for mine, other in pairs]


def _with_interval(ratios: Sequence[float]) -> str:
    low, high, probability = median_interval(ratios)
    return f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f}, {100 * probability:.0f} %)"


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The order-statistics interval of a median: two of the values.

    Returns:
        Its ends, and the probability that it holds the median of any continuous distribution: at least 0.95
        with six values or more.
    """
    ordered, left_out = sorted(values), 0
    while _probability(len(ordered), left_out + 1) >= 0.95:
        left_out += 1
    return ordered[left_out], ordered[-1 - left_out], _probability(len(ordered), left_out)


def _probability(count: int, left_out: int) -> float:
    """The probability that the median lies between the values without the `left_out` lowest and highest."""
    return 1 - 2 * sum(math.comb(count, below) for below in range(left_out + 1)) / 2.0**count


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


def sightline_command(port: int, concurrency: int, folder: Path, *more: str) -> list[str]:
    """The arguments of Python that run Sightline.

    Args:
        port: The port of the server.
        concurrency: Parallel calls.
        folder: Where the store and the results are written.
        more: Options that only this version has.

    Returns:
        The arguments.
    """
    words = f"run iibench:none --model http://127.0.0.1:{port}/v1#mock --concurrency {concurrency} --quiet"
    places = ["--data", str(SHARED / "data" / "iibench"), "--store", str(folder / "s.db")]
    return ["-m", "sightline", *words.split(), *places, "--out", str(folder / "out"), *more]


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
