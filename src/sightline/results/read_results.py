"""Reading the results of earlier evaluations from their folders."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from sightline.decoding import decode_json
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.whole_results import METRICS, refuse_mixed_files
from sightline.metric_types import Result
from sightline.metrics.agreement_definitions import DEFINITIONS, WITH_HUMANS
from sightline.metrics.consistency_metrics import BY_RESPONSE, COMPLETE, PAIR_METRICS
from sightline.results.earlier_options import complete_options
from sightline.results.sweep_record import SweepRecord

SWEEP = "sweep.json"

_Record = TypeVar("_Record")


def is_sweep(folder: Path) -> bool:
    """Check whether a folder holds a sweep."""
    return (folder / SWEEP).is_file()


def read_result(path: Path) -> Result:
    """Read the result of an evaluation."""
    if path.is_dir():
        refuse_mixed_files(path)
        path /= METRICS
    return _in_current_terms(_decode(path, METRICS, Result))


def read_sweep(folder: Path) -> SweepRecord:
    record = _decode(folder / SWEEP, SWEEP, SweepRecord)
    if not any(point.result for point in record.points):
        raise UserError("no point of this sweep has a result", file=folder / SWEEP)
    points = [
        replace(point, result=_in_current_terms(point.result)) if point.result else point
        for point in record.points
    ]
    return replace(record, points=points)


def _in_current_terms(result: Result) -> Result:
    """The result with the names and options of this version."""
    options = complete_options(result.benchmark, result.setting, result.options)
    return _with_names_by_response(_with_name_of_humans(replace(result, options=options)))


def _with_name_of_humans(result: Result) -> Result:
    """The result, with `agreement_with_humans` for what earlier versions called `agreement` of all."""
    earlier = ("agreement", "all")
    if all((metric.metric, metric.subset) != earlier for metric in result.metrics):
        return result
    metrics = [
        replace(metric, metric=WITH_HUMANS) if (metric.metric, metric.subset) == earlier else metric
        for metric in result.metrics
    ]
    definitions = {**result.metric_definitions, WITH_HUMANS: DEFINITIONS[WITH_HUMANS]}
    return replace(result, metrics=metrics, metric_definitions=definitions)


def _with_names_by_response(result: Result) -> Result:
    """The result, with `con_by_response` and its like for what earlier versions called `con` under labels.

    Those versions had no `con_complete`.
    """
    names = {metric.metric for metric in result.metrics}
    if "con" not in names or COMPLETE["con"] in names:
        return result
    renamed = {
        name: replace(result.metric_definitions[name], meaning=f"{name} by answer, averaged over answers")
        for name in PAIR_METRICS & result.metric_definitions.keys()
    }
    metrics = [
        replace(metric, metric=f"{metric.metric}{BY_RESPONSE}")
        if metric.metric in PAIR_METRICS and metric.subset != "all" and not metric.subset.startswith("judge=")
        else metric
        for metric in result.metrics
    ]
    definitions = {f"{name}{BY_RESPONSE}": definition for name, definition in renamed.items()}
    return replace(result, metrics=metrics, metric_definitions={**result.metric_definitions, **definitions})


def sweep_task(folder: Path) -> str:
    """Read the task of a sweep, whether or not it has results."""
    return _decode(folder / SWEEP, SWEEP, SweepRecord).task


def _decode(path: Path, name: str, kind: type[_Record]) -> _Record:
    if not path.is_file():
        folder = path.parent if path.name == name else path
        expected = "a results folder (--out)" if name == METRICS else "a readable file"
        raise UserError(f"has no {name}", file=folder, expected=expected)
    return decode_json(read_bytes(path), kind, path, f"a valid {name}")
