"""The long form: many kills, stops, locks, wrong clocks, full disks and broken servers.

    python -m tests.chaos [--kill N] [--stop N] [--lock N] [--skew N] [--disk N] [--broken N] [--lease S]
                          [--only NAME ...] [--seed N] [--store sqlite|postgresql]

The commands are run, run with a judge, score, sweep and store merge.
Prints a line for each trial, and a table in the end. The exit status is 1 if results differed, or if a
request was sent again that was not in flight at an interruption.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.chaos.disturbances import DISTURBANCES, Case, Trial, run_case
from tests.chaos.full_disk import why_not
from tests.chaos.workload import NAMES, Server, Workload
from tests.postgres_server import PostgresServer, find_programs

LONGER_THAN_LEASE = 1.6


def main() -> int:
    """Run the trials, print them, and count them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in DISTURBANCES:
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help="how many trials")
    parser.add_argument("--lease", type=float, default=15.0, help="seconds of a claim's lease (default: 15)")
    parser.add_argument("--only", nargs="*", default=NAMES, help="these commands")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    programs = find_programs()
    if options.store == "postgresql" and (options.disk or programs is None):
        parser.error("PostgreSQL is not installed" if programs is None else "--disk is about files")
    if options.disk and why_not():
        parser.error(f"--disk {why_not()}")
    trials: list[Trial] = []
    failed = 0
    with tempfile.TemporaryDirectory(prefix="sightline-chaos-") as folder:
        server = Server()
        postgres = PostgresServer(programs) if options.store == "postgresql" and programs else None
        try:
            workload = Workload(Path(folder), server, options.lease, postgres)
            for case in _cases(options):
                store = workload.store(f"{case.disturbance}-{case.name}-{case.seed}")
                try:
                    trials.append(run_case(case, workload, server, store))
                    _print_trial(trials[-1])
                except AssertionError as error:
                    failed += 1
                    print(f"FAILED {case}: {error}", flush=True)
        finally:
            server.stop()
            if postgres is not None:
                postgres.close()
    _print_table(trials)
    print(f"{failed} trials failed")
    return 1 if failed or any(trial.doubled.others for trial in trials) else 0


def _cases(options: argparse.Namespace) -> list[Case]:
    """The trials, the commands in turn."""
    seconds = LONGER_THAN_LEASE * options.lease
    return [
        Case(options.only[number % len(options.only)], name, options.seed + number, seconds)
        for name in DISTURBANCES
        for number in range(getattr(options, name))
    ]


def _print_trial(trial: Trial) -> None:
    case, doubled = trial.case, trial.doubled
    print(
        f"{case.disturbance} {case.name} {case.seed}: {trial.requests} requests, {trial.seconds:.0f} s; "
        f"sent again: {doubled.in_flight} in flight, {doubled.just_answered} just answered, "
        f"{len(doubled.others)} others",
        flush=True,
    )
    for earlier, later in doubled.others:
        print(f"  {trial.interruptions}\n  {earlier}\n  {later}", flush=True)


def _print_table(trials: list[Trial]) -> None:
    by_kind = defaultdict(list)
    for trial in trials:
        by_kind[trial.case.disturbance, trial.case.name].append(trial)
    heads = ("disturbance", "command", "trials", "requests", "in flight", "last 10 ms", "others")
    print("| " + " | ".join(heads) + " |")
    print("| --- | --- |" + " ---: |" * 5)
    for (disturbance, name), found in sorted(by_kind.items()):
        sums = [sum(trial.requests for trial in found), sum(trial.doubled.in_flight for trial in found)]
        sums += [sum(trial.doubled.just_answered for trial in found)]
        cells = (disturbance, name, len(found), *sums, sum(len(trial.doubled.others) for trial in found))
        print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    sys.exit(main())
