"""Sweeps: one benchmark at every combination of models and values of options, on one store."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import EnvironmentFailedError, UserError, unknown_name
from sightline.evaluation.estimate import RunEstimate, estimate
from sightline.evaluation.evaluation import Evaluation
from sightline.evaluation.prepare import prepare
from sightline.evaluation.run import arun
from sightline.formats.files import write_atomically
from sightline.models.augmented import AUGMENTATIONS, CAPTIONED
from sightline.plan.spec import Spec
from sightline.report.markdown import markdown
from sightline.report.pivot import pivot
from sightline.report.report_table import Column, ReportTable
from sightline.report.varied_options import ResultPoint, exact_text, options_text, short_names
from sightline.results.folder import Folder
from sightline.types import MetricValue, Result

LONGEST_NAME = 100
"""Characters of a folder's name; longer ones are cut, and end in a digest."""

STATES = {
    0: "done",
    1: "done, but some probes or judgements could not be had",
    2: "not run",
    4: "stopped at the budget",
    5: "done, but a condition of --fail-if holds",
}


class Point(Struct, frozen=True):
    """One combination of a sweep: the evaluation that it is, and `at` which values of what is varied.

    `name` says it in words ('llava, size=224'); the spec's `out` is the point's own folder.
    """

    name: str
    at: Mapping[str, Any]
    spec: Spec


class Reached(Struct, frozen=True):
    """A point and what came of it: an evaluation, or the `error` that there is none for.

    It has neither where it was not reached: a budget was spent before.
    """

    point: Point
    evaluation: Evaluation | None = None
    error: str = ""

    @property
    def exit_status(self) -> int:
        """That of its evaluation; 2 where it could not be run, 4 where it was not reached."""
        if self.evaluation is not None:
            return self.evaluation.exit_status
        return 2 if self.error else 4


class Sweep(Struct, frozen=True):
    """What came of a sweep, its points in the order in which they were run."""

    task: str
    points: tuple[Reached, ...]
    out: str | None = None

    @property
    def exit_status(self) -> int:
        """The worst of the points."""
        return max(reached.exit_status for reached in self.points)

    @property
    def results(self) -> list[ResultPoint]:
        """The results there are, each with the values that it was taken at."""
        return [
            ResultPoint(reached.evaluation.result, reached.point.at)
            for reached in self.points
            if reached.evaluation is not None
        ]

    def frame(self) -> Any:
        """All metrics as a pandas DataFrame, a row each, with model and varied options; extra `table`."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise UserError("no pandas", expected="pip install 'sightline[table]'") from None
        rows = [
            {"model": one.result.model, **one.at, **msgspec.structs.asdict(metric)}
            for one in self.results
            for metric in one.result.metrics
        ]
        return pandas.DataFrame(rows, columns=None if rows else ["model", *MetricValue.__struct_fields__])


def plan_sweep(
    base: Spec,
    models: Sequence[str],
    options: Mapping[str, Sequence[Any]],
    sampling: Mapping[str, Sequence[Any]],
    augments: Sequence[str] = (),
) -> list[Point]:
    """The points: every model with every combination of values, models changing slowest.

    `base` holds all that the points share, its `out` the folder of the whole sweep. An option with one
    value is given to every point and not varied. `augments` are ways to tell images in words; captions go
    to the points that take any. Raises UserError where something has no value, or the same one twice.
    """
    _check_values("--model", models)
    if base.model_id is not None and len(models) > 1:
        raise UserError(
            "--model-id would make the answers of all models one model's",
            expected="one --model, or names with a model_id each in sightline.toml",
        )
    varied = [("set", name, values) for name, values in options.items()]
    varied += [("gen", name, values) for name, values in sampling.items()]
    for kind, name, values in varied:
        _check_values(f"--{kind} {name}", values)
    if augments:
        _check_values("--augment", augments)
        varied.append(("augment", "augment", augments))
    short = short_names(models)
    points = []
    for model, *chosen in product(models, *(values for _, _, values in varied)):
        given: dict[str, dict[str, Any]] = {"set": {}, "gen": {}, "augment": {}}
        at: dict[str, Any] = {}
        for (kind, name, values), value in zip(varied, chosen, strict=True):
            given[kind][name] = value
            if len(values) > 1:
                at[f"gen {name}" if kind == "gen" and name in options else name] = value
        called = ", ".join(filter(None, (short[model], options_text(at))))
        spec = replace(base, model=model, set=given["set"], gen=given["gen"])
        points.append(Point(called, at, _augmented(spec, augments, **given["augment"])))
    return _with_folders(points, base.out)


async def asweep(
    points: Sequence[Point],
    out: str | None = None,
    *,
    show_progress: bool = False,
    ended: Callable[[Reached], object] = lambda reached: None,
) -> Sweep:
    """Run the points one after the other; `ended` is called with each as soon as it is done.

    `out` receives sweep.json and sweep.md, anew after every point. A point that fails does not stop the
    others. The budgets of the points are one budget of all: where it is reached, the rest is not run.
    Raises UserError before the first call where anything is wrong with any point, EnvironmentFailedError where
    the store or a disk fails on the way.
    """
    for point in points:
        prepare(point.spec)
    Folder.check(out)
    reached: list[Reached] = []
    for number, point in enumerate(points, 1):
        if show_progress:
            print(f"[{number}/{len(points)}] {point.name}", file=sys.stderr, flush=True)
        reached.append(await _reach(point, reached, show_progress))
        ended(reached[-1])
        sweep = Sweep(points[0].spec.task, (*reached, *map(Reached, points[number:])), out)
        _write(sweep)
        if reached[-1].exit_status == 4:
            break
    return sweep


def estimate_sweep(points: Sequence[Point]) -> list[RunEstimate]:
    """What each point would ask after those before it: what these ask is known by then.

    Raises UserError as a sweep would; nothing is asked or written.
    """
    planned: set[str] = set()
    return [estimate(point.spec, planned) for point in points]


def total(estimates: Sequence[RunEstimate]) -> RunEstimate:
    """The estimates added up; a number is None where that of any point is."""
    numbers = {name: [getattr(one, name) for one in estimates] for name in RunEstimate.__struct_fields__}
    added: dict[str, Any] = {name: None if None in each else sum(each) for name, each in numbers.items()}
    return RunEstimate(**added)


class KeptPoint(Struct, frozen=True):
    """A point as sweep.json keeps it: its values, its folder, how it ended, its whole result."""

    name: str
    model: str
    at: Mapping[str, Any]
    folder: str | None
    exit_status: int
    state: str
    result: Result | None


class Kept(Struct, frozen=True):
    """The whole of sweep.json."""

    task: str
    exit_status: int
    points: list[KeptPoint]
    schema: int = 1


def kept(sweep: Sweep) -> Kept:
    """The sweep as sweep.json keeps it."""
    points = [
        KeptPoint(
            name=one.point.name,
            model=one.point.spec.model,
            at=one.point.at,
            folder=_folder(one),
            exit_status=one.exit_status,
            state=_state(one),
            result=one.evaluation.result if one.evaluation is not None else None,
        )
        for one in sweep.points
    ]
    return Kept(sweep.task, sweep.exit_status, points)


async def _reach(point: Point, before: Sequence[Reached], show_progress: bool) -> Reached:
    """Run a point on what those before it left of the budget."""
    spec = point.spec
    counts = [some for one in before if one.evaluation for some in one.evaluation.all_counts]
    if spec.max_requests is not None:
        spec = replace(spec, max_requests=max(0, spec.max_requests - sum(some.sent for some in counts)))
    if spec.max_cost is not None:
        spec = replace(spec, max_cost=max(0.0, spec.max_cost - sum(some.cost for some in counts)))
    try:
        return Reached(point, await arun(spec, show_progress=show_progress))
    except UserError as error:
        return Reached(point, error=str(error))


def _folder(reached: Reached) -> str | None:
    out = reached.point.spec.out
    return Path(out).name if out else None


def _state(reached: Reached) -> str:
    if reached.error:
        return reached.error
    return STATES[reached.exit_status] if reached.evaluation is not None else "not reached"


def _write(sweep: Sweep) -> None:
    if sweep.out is None:
        return
    folder = Path(sweep.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFailedError(f"{folder}: cannot be made: {error.strerror}") from None
    told = msgspec.json.format(msgspec.json.encode(kept(sweep)), indent=1)
    write_atomically(folder / "sweep.json", [told, b"\n"])
    tables = [*(pivot(sweep.results) if sweep.results else []), _points_table(sweep)]
    write_atomically(folder / "sweep.md", [f"# {sweep.task}\n\n{markdown(tables)}\n".encode()])


def _points_table(sweep: Sweep) -> ReportTable:
    columns = tuple(Column("text", name, name) for name in ("point", "folder", "state"))
    rows = [(one.point.name, _folder(one), _state(one)) for one in sweep.points]
    return ReportTable("Points", columns, tuple(rows))


def _augmented(spec: Spec, augments: Sequence[str], augment: str | None = None) -> Spec:
    """The spec with one of the ways to tell images in words, if there are any."""
    if augment is None:
        return spec
    if augment not in AUGMENTATIONS:
        raise unknown_name("--augment", augment, AUGMENTATIONS)
    if augment != CAPTIONED and CAPTIONED in augments:
        spec = replace(spec, captioner=None, captions=None)
    return replace(spec, augment=augment)


def _with_folders(points: Sequence[Point], out: str | None) -> list[Point]:
    """The points with a folder each inside `out`, named after them, safely and apart on any disk."""
    if out is None:
        return list(points)
    names = [re.sub(r"[^\w.=+-]+", "-", point.name.replace(", ", "_"), flags=re.ASCII) for point in points]
    names = [name.lstrip(".-") for name in names]
    times = Counter(name.casefold() for name in names)
    folders = [
        name
        if name and times[name.casefold()] == 1 and len(name) <= LONGEST_NAME
        else f"{name[: LONGEST_NAME - 9]}-{_digest(point)}".lstrip("-")
        for name, point in zip(names, points, strict=True)
    ]
    return [
        replace(point, spec=replace(point.spec, out=str(Path(out) / folder)))
        for point, folder in zip(points, folders, strict=True)
    ]


def _digest(point: Point) -> str:
    return hashlib.sha256(exact_text([point.spec.model, point.at]).encode()).hexdigest()[:8]


def _check_values(what: str, values: Sequence[Any]) -> None:
    if not values:
        raise UserError(f"{what} has no value", expected="at least one")
    for value, times in Counter(map(exact_text, values)).items():
        if times > 1:
            raise UserError(f"{what} names {value} twice", expected="each once")
