"""Sweeps: one benchmark at every combination of models and values of options, on one store."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sightline.engine.account import Account
from sightline.engine.existing_store import existing_or_empty_store
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.errors import UserError
from sightline.evaluation.checks import check_results_folder
from sightline.evaluation.description import describe_evaluation
from sightline.evaluation.estimate import RunEstimate, estimate_run
from sightline.evaluation.evaluation import Evaluation
from sightline.evaluation.key_set import KeySet
from sightline.evaluation.label_run import check_name
from sightline.evaluation.prepare import prepare_evaluation
from sightline.evaluation.run import run_evaluation
from sightline.evaluation.run_account import run_account
from sightline.evaluation.sweep_plan import SweepPoint
from sightline.evaluation.write_sweep import write_sweep
from sightline.metric_types import MetricValue
from sightline.output import print_note
from sightline.replicas.kept import replicas_kept
from sightline.reporting.tables_text import import_pandas
from sightline.reporting.varied_options import ResultPoint
from sightline.results.folder import ResultsFolder
from sightline.results.same_run import refuse_other_sweep
from sightline.results.sweep_record import PointRecord, SweepRecord

STATES = {
    0: "done",
    1: "done, but some answers or judgements are missing",
    2: "not run",
    4: "stopped at the budget",
    5: "done, but a condition of --fail-if holds",
}
"""What sweep.json and sweep.md say about an exit status."""


class PointRun(Struct, frozen=True):
    """A point and its evaluation, or the `error` that prevented it.

    It has neither where the budget was spent before the point.
    """

    point: SweepPoint
    evaluation: Evaluation | None = None
    error: str = ""

    @property
    def exit_status(self) -> int:
        """The exit status of the evaluation; 2 if it was refused, 4 if the budget was spent before it."""
        if self.evaluation is not None:
            return self.evaluation.exit_status
        return 2 if self.error else 4

    @property
    def record(self) -> PointRecord:
        """The point as sweep.json keeps it."""
        evaluated = self.evaluation is not None
        return PointRecord(
            name=self.point.name,
            model=self.point.spec.model,
            values=self.point.values,
            folder=Path(self.point.spec.out).name if self.point.spec.out else None,
            exit_status=self.exit_status,
            state=self.error or (STATES[self.exit_status] if evaluated else "not reached"),
            result=self.evaluation.result if self.evaluation is not None else None,
        )


class Sweep(Struct, frozen=True):
    """A sweep, its points in the order in which they ran."""

    task: str
    points: tuple[PointRun, ...]
    out: str | None = None

    @property
    def exit_status(self) -> int:
        """The worst exit status of the points."""
        return max(run.exit_status for run in self.points)

    @property
    def results(self) -> list[ResultPoint]:
        """The results of the evaluated points, each with the values of the varied options."""
        return [
            ResultPoint(run.evaluation.result, run.point.values)
            for run in self.points
            if run.evaluation is not None
        ]

    @property
    def record(self) -> SweepRecord:
        """The sweep as sweep.json keeps it."""
        return SweepRecord(self.task, self.exit_status, [run.record for run in self.points])

    def frame(self) -> Any:
        """All metrics as a pandas DataFrame, one row each; needs the extra `table`."""
        rows = [
            {"model": point.result.model, **point.values, **msgspec.structs.asdict(metric)}
            for point in self.results
            for metric in point.result.metrics
        ]
        columns = None if rows else ["model", *MetricValue.__struct_fields__]
        return import_pandas().DataFrame(rows, columns=columns)


async def run_sweep(
    points: Sequence[SweepPoint],
    out: str | None = None,
    *,
    show_progress: bool = False,
    on_point: Callable[[PointRun], object] = lambda run: None,
) -> Sweep:
    """Run the points one after the other, on one budget.

    A point that fails does not stop the others; where the budget is reached, the rest is not run.
    """
    await run_in_thread(_check, points, out)
    runs: list[PointRun] = []
    began = time.time()
    async with replicas_kept(), _account(points) as account:
        for number, point in enumerate(points, 1):
            if show_progress:
                print_note(f"[{number}/{len(points)}] {point.name}")
            runs.append(await _run_point(point, began, account, show_progress))
            on_point(runs[-1])
            sweep = Sweep(points[0].spec.task, (*runs, *map(PointRun, points[number:])), out)
            if out is not None:
                await run_in_thread(write_sweep, out, sweep.record, sweep.results)
            if runs[-1].exit_status == 4:
                break
    return sweep


def estimate_sweep(points: Sequence[SweepPoint]) -> list[RunEstimate]:
    """Estimate what each point sends after those before it, whose answers it reuses."""
    planned_keys = KeySet()
    return [estimate_run(point.spec, planned_keys) for point in points]


def _check(points: Sequence[SweepPoint], out: str | None) -> None:
    for point in points:
        prepared = prepare_evaluation(point.spec)
        description = describe_evaluation(prepared)
        check_results_folder(point.spec, description)
        if point.spec.name is not None:
            with existing_or_empty_store(point.spec.store) as store:
                check_name(point.spec, store, description)
    ResultsFolder.check(out)
    if out is not None and not points[0].spec.force:
        refuse_other_sweep(Path(out), points[0].spec.task)


@asynccontextmanager
async def _account(points: Sequence[SweepPoint]) -> AsyncIterator[Account]:
    specs = [point.spec for point in points]
    store = await run_in_thread(Store.open, specs[0].store)
    try:
        async with run_account(specs, store) as account:
            yield account
    finally:
        await run_in_thread(store.close)


async def _run_point(point: SweepPoint, began: float, account: Account, show_progress: bool) -> PointRun:
    """Run a point on the account of the sweep; answers since `began` need no check of their endpoint."""
    try:
        evaluation = await run_evaluation(
            point.spec, began=began, account=account, show_progress=show_progress
        )
        return PointRun(point, evaluation)
    except UserError as error:
        return PointRun(point, error=str(error))
