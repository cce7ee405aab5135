"""Sweeps: benchmarks at every combination of models and values of options, on one store."""

from __future__ import annotations

import dataclasses
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.limits import Account
from sightline.errors import EnvironmentFailedError, UserError, unknown_name
from sightline.evaluation.estimate import KeySet, RunEstimate, estimate_run
from sightline.evaluation.folder import PointRecord, ResultsFolder, SweepRecord, refuse_other_sweep
from sightline.evaluation.prepare import check_results_folder, describe_evaluation, prepare_evaluation
from sightline.evaluation.recorded_run import check_name
from sightline.evaluation.result import Evaluation
from sightline.evaluation.run import run_evaluation
from sightline.evaluation.spec import Spec
from sightline.formats.files import text_digest, write_atomically
from sightline.models.ocr import AUGMENTATIONS
from sightline.replicas.fleet import replicas_kept
from sightline.reporting.notes import ResultPoint, exact_text, options_text, short_names
from sightline.reporting.pivot import PointLine, sweep_markdown
from sightline.reporting.tables import import_pandas
from sightline.store.database import run_in_thread
from sightline.store.store import existing_or_empty_store
from sightline.text import print_note
from sightline.types import CAPTIONED, MetricValue

STATES = {
    0: "done",
    1: "done, but some answers or judgements are missing",
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
        return max(run.exit_status for run in self.points)

    @property
    def results(self) -> list[ResultPoint]:
        return [
            ResultPoint(run.evaluation.result, run.point.values)
            for run in self.points
            if run.evaluation is not None
        ]

    @property
    def record(self) -> SweepRecord:
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


Evaluate = Callable[..., Awaitable[Evaluation]]


async def run_sweep(
    points: Sequence[SweepPoint],
    out: str | None = None,
    *,
    show_progress: bool = False,
    on_point: Callable[[PointRun], object] = lambda run: None,
    evaluate: Evaluate = run_evaluation,
) -> Sweep:
    """Run the points one after the other, on one budget; `evaluate` runs one, as `run_evaluation` does.

    A point that fails does not stop the others; where the budget is reached, the rest is not run.
    """
    await run_in_thread(_check, points, out)
    runs: list[PointRun] = []
    began, account = time.time(), Account()
    async with replicas_kept():
        for number, point in enumerate(points, 1):
            if show_progress:
                print_note(f"[{number}/{len(points)}] {point.name}")
            runs.append(await _run_point(point, evaluate, began, account, show_progress))
            on_point(runs[-1])
            sweep = Sweep(_tasks(points), (*runs, *map(PointRun, points[number:])), out)
            if out is not None:
                await run_in_thread(write_sweep, out, sweep.record, sweep.results)
            if runs[-1].exit_status == 4:
                break
    return sweep


def estimate_sweep(points: Sequence[SweepPoint]) -> list[RunEstimate]:
    """Estimate what each point sends after those before it, whose answers it reuses."""
    planned_keys: KeySet = set()
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
        refuse_other_sweep(Path(out), _tasks(points))


def _tasks(points: Sequence[SweepPoint]) -> str:
    return ", ".join(dict.fromkeys(point.spec.task for point in points))


async def _run_point(
    point: SweepPoint, evaluate: Evaluate, began: float, account: Account, show_progress: bool
) -> PointRun:
    """Run a point on the account of the sweep; answers since `began` need no check of their endpoint."""
    try:
        evaluation = await evaluate(point.spec, began=began, account=account, show_progress=show_progress)
        return PointRun(point, evaluation)
    except UserError as error:
        return PointRun(point, error=str(error))


# -- The points of a sweep: every combination of models and values of options, a folder and a name each

LONGEST_NAME = 100
"""The maximum length of a folder's name; longer names are cut and end in a digest."""


class SweepPoint(Struct, frozen=True):
    """One combination of a sweep.

    `name` is a readable name ('llava, size=224'), `values` maps each varied option to its value here. `spec`
    is the evaluation; its `out` is the folder of the point.
    """

    name: str
    values: Mapping[str, Any]
    spec: Spec


class _Varied(Struct, frozen=True):
    """An option and its values. `kind` is the field of the spec that takes it: set, gen or augment."""

    kind: str
    name: str
    values: Sequence[Any]


def plan_sweep(
    bases: Sequence[Spec],
    models: Sequence[str],
    options: Mapping[str, Sequence[Any]],
    sampling: Mapping[str, Sequence[Any]],
    augments: Sequence[str] = (),
) -> list[SweepPoint]:
    """Combine every model with every base, one for each task, and every combination of values.

    Models change slowest: one that runs here is loaded once.
    """
    _check_values("--model", models)
    _check_values("the task", [base.task for base in bases])
    if bases[0].model_id is not None and len(models) > 1:
        raise UserError(
            "--model-id would give several models one identity",
            expected="one --model, or a model_id for each name in sightline.toml",
        )
    varied = [_Varied("set", name, values) for name, values in options.items()]
    varied += [_Varied("gen", name, values) for name, values in sampling.items()]
    for option in varied:
        _check_values(f"--{option.kind} {option.name}", option.values)
    if augments:
        _check_values("--augment", augments)
        varied.append(_Varied("augment", "augment", augments))
    short = short_names(models)
    points = []
    for model, base, *selected in product(models, bases, *(option.values for option in varied)):
        fields: dict[str, dict[str, Any]] = {"set": {}, "gen": {}, "augment": {}}
        values: dict[str, Any] = {}
        for option, value in zip(varied, selected, strict=True):
            fields[option.kind][option.name] = value
            if len(option.values) > 1:
                shared = option.kind == "gen" and option.name in options
                values[f"gen {option.name}" if shared else option.name] = value
        task = base.task if len(bases) > 1 else ""
        name = ", ".join(filter(None, (short[model], task, options_text(values))))
        spec = dataclasses.replace(
            base, model=model, set={**base.set, **fields["set"]}, gen={**base.gen, **fields["gen"]}
        )
        points.append(SweepPoint(name, values, _augmented(spec, augments, **fields["augment"])))
    return _with_names(points, bases[0])


def _augmented(spec: Spec, augments: Sequence[str], augment: str | None = None) -> Spec:
    if augment is None:
        return spec
    if augment not in AUGMENTATIONS:
        raise unknown_name("--augment", augment, AUGMENTATIONS)
    if augment != CAPTIONED and CAPTIONED in augments:
        spec = dataclasses.replace(spec, captioner=None, captions=None)
    return dataclasses.replace(spec, augment=augment)


def _with_names(points: Sequence[SweepPoint], base: Spec) -> list[SweepPoint]:
    return [
        replace(
            point,
            spec=dataclasses.replace(
                point.spec,
                out=None if base.out is None else str(Path(base.out) / short),
                name=None if base.name is None else f"{base.name}:{short}",
            ),
        )
        for point, short in zip(points, _distinct_names(points), strict=True)
    ]


def _distinct_names(points: Sequence[SweepPoint]) -> list[str]:
    """A name for each point that is distinct and safe on every file system."""
    names = [re.sub(r"[^\w.=+-]+", "-", point.name.replace(", ", "_"), flags=re.ASCII) for point in points]
    names = [name.lstrip(".-") for name in names]
    times = Counter(name.casefold() for name in names)
    return [
        name
        if name and times[name.casefold()] == 1 and len(name) <= LONGEST_NAME
        else f"{name[: LONGEST_NAME - 9]}-{_digest(point)}".lstrip("-")
        for name, point in zip(names, points, strict=True)
    ]


def _digest(point: SweepPoint) -> str:
    return text_digest(exact_text([point.spec.task, point.spec.model, point.values]))[:8]


def _check_values(option: str, values: Sequence[Any]) -> None:
    if not values:
        raise UserError(f"{option} has no value", expected="at least one")
    for value, times in Counter(map(exact_text, values)).items():
        if times > 1:
            raise UserError(f"{option} has the value {value} twice", expected="each value once")


# -- Writing the files of a sweep: sweep.json, the whole sweep as data, and sweep.md, its tables


def write_sweep(out: str, record: SweepRecord, results: Sequence[ResultPoint]) -> None:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFailedError(f"{folder}: cannot be made: {error.strerror}") from None
    body = msgspec.json.format(msgspec.json.encode(record), indent=1)
    write_atomically(folder / "sweep.json", [body, b"\n"])
    points = [PointLine(point.name, point.folder, point.state) for point in record.points]
    write_atomically(folder / "sweep.md", [sweep_markdown(record.task, results, points).encode()])
