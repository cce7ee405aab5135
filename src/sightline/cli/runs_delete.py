"""`sightline runs delete`: delete runs from the store; the answers of models and judges stay."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sightline.cli.options import add_store
from sightline.errors import UserError
from sightline.output import print_line, print_note

if TYPE_CHECKING:
    from sightline.results.run_list import RunLine

SUMMARY = "delete runs; the answers of models and judges stay"

EXAMPLE = """examples:
  sightline runs delete 3
  sightline runs delete base 7 --yes

`report` and `compare` cannot show a deleted run any more. The same `sightline run` command makes a new run
from the cached answers, under a new number.
"""

GOES = "deleted: options, list of probes, copied verdicts of humans, name, tags and note of each run"
STAYS = "kept: all answers of models and judges, and results folders (--out)"


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs delete`."""
    parser.epilog = EXAMPLE
    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers or names of runs")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Ask, then delete the runs."""
    from sightline.engine.existing_run import no_run
    from sightline.engine.store import Store
    from sightline.results.run_list import list_runs
    from sightline.results.run_names import find_run

    store = Store.open(options.store, create=False)
    try:
        there = {run.number: run for run in list_runs(store)}
        numbers = {find_run(store, word) for word in options.runs}
        for number in sorted(numbers - there.keys()):
            raise no_run(number, store.name)
        for number in sorted(numbers & store.leases.held()):
            raise UserError(
                f"run {number} is in progress: a process is working on it",
                file=store.name,
                expected="a run that ended; stop that process first",
            )
        if not options.yes and not _is_confirmed([there[number] for number in sorted(numbers)]):
            print_note("nothing is deleted")
            return 0
        for number in sorted(numbers):
            store.runs.drop(number)
    finally:
        store.close()
    print_line(f"deleted: {', '.join(f'run {number}' for number in sorted(numbers))}; all answers are kept")
    return 0


def _is_confirmed(runs: Sequence[RunLine]) -> bool:
    """Ask the user in the terminal."""
    if not sys.stdin.isatty():
        raise UserError("runs delete asks before it deletes, and there is no terminal", expected="--yes")
    for run in runs:
        name = f" ({run.name})" if run.name else ""
        facts = filter(None, (run.task, run.model, run.started, run.state))
        print_line(f"run {run.number}{name}: {', '.join(facts)}")
    print_line(GOES)
    print_line(STAYS)
    return input("delete? [y/N] ").strip().casefold() in ("y", "yes")
