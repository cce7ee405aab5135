"""Trains and tests the arms of the adapter study, and keeps the values of each group as small files.

python -m training.adapter.study --resume searches the learning rate of each kind and loss on held-out groups,
trains every arm from several seeds, tests it, and writes one file for each training to
training/adapter/results. Two processes of one thread each work at a time. After an interruption or a kill,
the same command continues: only the trainings that were under way begin again. Then
`python -m training.adapter.tables` writes the tables of docs/adapters.md from these files alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sightline.errors import UserError
from training.adapter.design import (
    LOSSES,
    RATES,
    ArmUnit,
    Loss,
    Sizes,
    Unit,
    arm_units,
    cost,
    first_units,
    rate_units,
)
from training.adapter.result_files import RESULTS, ResultFiles

if TYPE_CHECKING:
    from training.adapter.work import Worker

WORK = Path("build/adapter-study")
PROCESSES = 2
_workers: list[Worker] = []


def run_study(results: ResultFiles, work: Path, sizes: Sizes, *, processes: int = PROCESSES) -> None:
    """Do all units that are not done.

    Args:
        results: Where the results are.
        work: The folder of the data and of checkpoints.
        sizes: The sizes of the study.
        processes: The number of processes; 0 works in this one.
    """
    from training.adapter.scenes import Scenes

    scenes = Scenes(work, sizes)
    scenes.generate()
    results.keep_design(scenes.design())
    if not processes:
        _do_here(results, work, sizes)
        return
    # Torch and the model of one process must not be copied into another: spawn starts them anew.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _start, (work, sizes, os.getpid()))
    with pool:
        for phase in (_first, _arms):
            _do_all(pool, results, list(phase(results, sizes)), sizes, processes)


def chosen_rates(results: ResultFiles) -> dict[tuple[str, Loss], float]:
    """The learning rate of each kind and loss with the best mean score over the seeds of the search.

    Args:
        results: The results, with those of the whole search.

    Returns:
        The rates; one that diverged from a seed is not chosen.
    """
    scores: dict[tuple[str, Loss], dict[float, list[float]]] = {}
    for unit in rate_units():
        found = results.rate(unit.name)
        of_rate = scores.setdefault((unit.kind, unit.loss), {}).setdefault(unit.rate, [])
        of_rate.append(float("-inf") if found.held is None else found.held.score)
    return {key: max(rates, key=lambda rate: sum(rates[rate])) for key, rates in scores.items()}


def _first(results: ResultFiles, sizes: Sizes) -> Iterator[Unit]:
    return first_units()


def _arms(results: ResultFiles, sizes: Sizes) -> Iterator[Unit]:
    return arm_units(sizes, chosen_rates(results))


def _do_here(results: ResultFiles, work: Path, sizes: Sizes) -> None:
    _start(work, sizes, os.getppid())
    for phase in (_first, _arms):
        for unit in phase(results, sizes):
            if not results.has(unit.name):
                results.write(unit.name, _do(unit)[0])


def _do_all(
    pool: ProcessPoolExecutor, results: ResultFiles, units: Sequence[Unit], sizes: Sizes, processes: int
) -> None:
    """Do the units of a phase; each result is written as soon as it is there."""
    missing = [unit for unit in units if not results.has(unit.name)]
    progress = _Progress(sizes, len(units) - len(missing), missing, processes)
    running: dict[Future[tuple[Struct, float]], Unit] = {pool.submit(_do, unit): unit for unit in missing}
    try:
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                unit = running.pop(future)
                result, seconds = future.result()
                results.write(unit.name, result)
                progress.finished(unit, seconds)
    except BaseException:
        for future in running:
            future.cancel()
        raise


class _Progress:
    """Prints a line after each unit: what is done, and how long the rest takes at the speed so far."""

    def __init__(self, sizes: Sizes, done: int, missing: Sequence[Unit], processes: int) -> None:
        self._sizes, self._processes = sizes, processes
        later = not any(isinstance(unit, ArmUnit) for unit in missing)
        self._count, self._total = done, done + len(missing)
        self._left = sum(cost(unit, sizes) for unit in missing)
        self._expected = self._taken = 0.0
        # The rates of the arms are not known yet, but their cost does not depend on them.
        rates = {(kind, loss): 0.0 for kind in RATES for loss in LOSSES}
        self._later = sum(cost(unit, sizes) for unit in arm_units(sizes, rates)) if later else 0.0
        later_text = " of the search of learning rates; the arms follow" if later else " of the arms"
        self._what = f"trainings and tests{later_text}"

    def finished(self, unit: Unit, seconds: float) -> None:
        """Count a unit and print the line.

        Units that are under way count as not begun, and as nothing of the time so far.
        """
        self._count += 1
        self._taken += seconds
        self._expected += cost(unit, self._sizes)
        self._left -= cost(unit, self._sizes)
        speed = self._taken / self._expected / self._processes
        left = round(speed * (self._left + self._later) / 60)
        now = time.strftime("%H:%M")
        print(
            f"{now} {unit.name}: {self._count} of {self._total} {self._what}; about {left:,} min left in all",
            file=sys.stderr,
            flush=True,
        )


def _start(work: Path, sizes: Sizes, parent: int) -> None:
    """Prepare a worker process, which ends when its parent does."""
    from training.adapter.work import Worker

    if parent != os.getppid():
        os._exit(1)
    if parent_process() is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _workers[:] = [Worker(work, sizes)]


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _do(unit: Unit) -> tuple[Struct, float]:
    """The result of a unit, and the seconds that it took."""
    began = time.monotonic()
    return _workers[0].do(unit), time.monotonic() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m training.adapter.study",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--resume", action="store_true", help="continue, and keep the results that exist")
    add("--results", type=Path, default=RESULTS, help="folder of the results (default: %(default)s)")
    add("--work", type=Path, default=WORK, help="folder of data and checkpoints (default: %(default)s)")
    sizes = Sizes()
    add("--model", default=sizes.model, help="local model (default: %(default)s)")
    for name, described in (
        ("groups", "training groups per task"),
        ("test", "test groups per task"),
        ("steps", "steps of a training"),
        ("batch", "groups per step"),
        ("seeds", "seeds of each arm"),
        ("paper-steps", "most steps with the paper's learning rate"),
    ):
        default = getattr(sizes, name.replace("-", "_"))
        add(f"--{name}", type=int, default=default, metavar="N", help=f"{described} (default: {default:,})")
    add(
        "--processes",
        type=int,
        default=PROCESSES,
        metavar="N",
        help=f"processes of one thread each; 0 works in this process (default: {PROCESSES})",
    )
    options = parser.parse_args(arguments)
    results = ResultFiles(options.results)
    names = Sizes.__struct_fields__
    try:
        if results.names() and not options.resume:
            raise UserError(
                "already holds results",
                file=results.folder,
                expected="--resume to continue, or another --results",
            )
        chosen = Sizes(**{name: getattr(options, name) for name in names})
        run_study(results, options.work, chosen, processes=options.processes)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
