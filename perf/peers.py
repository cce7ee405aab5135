"""The engine beside other tools: whole processes, the same images, prompts and server.

    python perf/peers.py [--peer TOOL=PYTHON ...] [--limit N] [--rounds N] [--json FILE]

TOOL is inspect_ai, lmms_eval or vlmeval (VLMEvalKit, published as nvidia-vlmeval), PYTHON the interpreter of
an environment that has it (perf/README.md has the recipes). The server answers at once and counts the
requests: a tool that sends another number fails.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine import HERE, NO_CHECK, PROBES, SHARED, Server, bare_command, sightline_command
from peer_options import PEERS, read_peers
from process_usage import ProcessUsage
from report import Report, new_parser

CONCURRENCY = 64
RECORDS = SHARED / "data" / "iibench" / "test.json"
DISTRIBUTIONS = {"vlmeval": "nvidia-vlmeval"}
"""Tool -> its name in the package registry, where that is another one."""

Command = Callable[[int, Path], list[str]]
"""From the server's port and an empty folder to the arguments of a Python."""


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--peer", action="append", default=[], metavar="TOOL=PYTHON")
    parser.add_argument("--limit", type=int, default=0, help="questions for the other tools; 0: all")
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the median is printed")
    options = parser.parse_args()
    pythons = read_peers(options.peer)
    asked = options.limit or PROBES
    report = Report()
    report.table("", "tool", "wall", "ratio to the bare client", "processor s per 1,000 probes", "peak MB")
    floor = _measure(
        report, "bare client", PROBES, options.rounds, lambda port, _: bare_command(port, CONCURRENCY)
    )
    _measure(
        report,
        "sightline",
        PROBES,
        options.rounds,
        lambda port, folder: sightline_command(port, CONCURRENCY, folder, *NO_CHECK),
        floor,
    )
    for tool in PEERS:
        if tool in pythons:
            name = f"{tool} {version(tool, pythons[tool])}"
            command = partial(_peer_command, tool, options.limit)
            _measure(report, name, asked, options.rounds, command, floor, pythons[tool])
        else:
            report.note(f"{tool} is not measured: its environment was not given (--peer {tool}=PYTHON).")
    report.save(options.json)


def _peer_command(tool: str, limit: int, port: int, folder: Path) -> list[str]:
    """The arguments of Python that run the driver of a tool."""
    driver = HERE / "peer_drivers" / f"{tool}_driver.py"
    return [str(driver), str(RECORDS), str(port), str(CONCURRENCY), str(folder / tool), str(limit)]


def version(tool: str, python: str) -> str:
    """The version of a tool that an environment has."""
    code = f"import importlib.metadata as m; print(m.version('{DISTRIBUTIONS.get(tool, tool)}'))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"--peer {tool}={python}: {found.stderr.strip().splitlines()[-1]}")
    return found.stdout.strip()


def _measure(
    report: Report,
    name: str,
    asked: int,
    rounds: int,
    command: Command,
    floor: float | None = None,
    python: str = sys.executable,
) -> float:
    """Measure one tool, and add its row; returns its seconds for all probes."""
    usages: list[ProcessUsage] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, Server(()) as server:
            run = server.run(command(server.port, Path(folder)), python)
            if run.stats["requests"] != asked:
                raise SystemExit(f"{name} sent {run.stats['requests']} requests instead of {asked}")
            usages.append(run.usage)
    wall, cpu, memory = (statistics.median(part) for part in zip(*usages, strict=True))
    shown = name if asked == PROBES else f"{name}, {asked} probes"
    ratio = f"{wall / floor:.1f}" if floor is not None and asked == PROBES else ""
    report.row(shown, f"{wall:.2f} s", ratio, f"{cpu * 1000 / asked:.2f} s", f"{memory:.0f}")
    return float(wall)


if __name__ == "__main__":
    main()
