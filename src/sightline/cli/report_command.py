"""`sightline report`: tables of earlier runs, computed anew from the store, or of results folders."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.cli.options import add_options, add_printing, add_store
from sightline.cli.printing import print_json
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.engine.store import Store
    from sightline.metric_types import Result
    from sightline.report.varied_options import ResultPoint
    from sightline.results.fail_if import Condition

EXAMPLE = """examples:
  sightline report                                  the latest finished run of ./sightline.db
  sightline report --list                           all runs
  sightline report 3 4 --by category                two runs side by side
  sightline report results/a results/b --format csv > table.csv
  sightline report 3 4 5 --pivot --plot curves.png  a row for each model, a column for each varied value
  sightline report results/sizes                    the table of a sweep
  sightline report results/a --fail-if 'acc_p<30'   exit status 5 if it holds
"""

SWEEP = "sweep.json"
ALWAYS = {"temperature", "split", "augment", "text_metrics", "unchanged", "size", "limit", "repeats", "fresh"}
"""Options that --list always prints; it prints others only if the runs of a task differ in them."""

_Kind = TypeVar("_Kind")


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `report`."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="number of a run, or folder of results or of a sweep (default: the latest run)",
    )
    parser.add_argument("--list", action="store_true", help="list the runs in the store")
    parser.add_argument(
        "--pivot", action="store_true", help="print a row for each model and a column for each varied value"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="plot metrics against the varied number: FILE.png or FILE.svg"
    )
    add_options(parser, ["against", "fail_if"])
    add_printing(parser)
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the tables; returns the exit status, 5 if a condition of --fail-if holds."""
    from sightline.cli.printing import print_conditions_met, print_pivot, print_results
    from sightline.engine.store import Store
    from sightline.evaluation.recompute import recompute
    from sightline.report.varied_options import result_points
    from sightline.results.fail_if import check_condition_metrics, parse_conditions

    conditions = parse_conditions(options.fail_if)
    if options.list and conditions:
        raise UserError("--list prints no metrics for --fail-if", expected="one of the two")
    folders = [Path(name) for name in options.runs if not name.isdecimal()]
    swept = {folder: _read_sweep(folder, options.against) for folder in folders if _is_sweep(folder)}
    results: list[Result] = []
    for folder in folders:
        results += (
            [point.result for point in swept[folder]] if folder in swept else [_read(folder, options.against)]
        )
    numbers = [int(name) for name in options.runs if name.isdecimal()]
    if numbers or options.list or not folders:
        store = Store.open(options.store, create=False)
        try:
            if options.list:
                return _list(store, options.format)
            results += [recompute(store, number, options.against) for number in numbers or (None,)]
        finally:
            store.close()
    check_condition_metrics(conditions, {metric.metric for result in results for metric in result.metrics})
    # A sweep records its varied options; those of other results are the options that differ.
    points = next(iter(swept.values())) if len(options.runs) == len(swept) == 1 else result_points(results)
    if options.plot:
        from sightline.report.curves import check_plot, curves

        check_plot(Path(options.plot), [point.values for point in points])
    if options.pivot or swept:
        print_pivot(points, options.format, options.by)
    else:
        print_results(results, options.format, options.by)
    if options.plot:
        curves(points, Path(options.plot))
    found = _met(conditions, results)
    print_conditions_met(found)
    return 5 if found else 0


def _met(conditions: Sequence[Condition], results: Sequence[Result]) -> list[str]:
    """Describe the conditions that hold, with the name of the result if there are several."""
    from sightline.report.tables import run_names
    from sightline.results.fail_if import conditions_met

    names = [f"{name}: " for name in run_names(results)] if len(results) > 1 else [""]
    return [
        f"{name}{one}"
        for name, result in zip(names, results, strict=True)
        for one in conditions_met(conditions, result.metrics)
    ]


def _read(folder: Path, against: str | None) -> Result:
    from sightline.metric_types import Result

    path = folder / "metrics.json" if folder.is_dir() else folder
    return _attached(_decoded(folder, path, Result), against)


def _is_sweep(folder: Path) -> bool:
    return (folder / SWEEP).is_file()


def _read_sweep(folder: Path, against: str | None) -> list[ResultPoint]:
    """The results of a sweep, with the values of its varied options."""
    from sightline.evaluation.sweep_record import SweepRecord
    from sightline.report.varied_options import ResultPoint

    records = _decoded(folder, folder / SWEEP, SweepRecord).points
    points = [ResultPoint(_attached(one.result, against), one.values) for one in records if one.result]
    if not points:
        raise UserError("no point of this sweep has a result", file=folder / SWEEP)
    return points


def _attached(result: Result, against: str | None) -> Result:
    from sightline.results.published import add_published

    return add_published(result, against) if against is not None else result


def _decoded(folder: Path, path: Path, kind: type[_Kind]) -> _Kind:
    import msgspec

    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError:
        raise UserError("has no metrics.json", file=folder, expected="a results folder (--out)") from None
    except msgspec.DecodeError as error:
        name = path.name if path.name == SWEEP else "metrics.json"
        raise UserError(f"is not a valid {name} ({error})", file=path) from None


def _list(store: Store, form: str) -> int:
    runs = store.runs()
    of_task = defaultdict(list)
    for _, body, *_ in runs:
        of_task[_task(body)].append(_options(body))
    printed = {task: _varied(options) | ALWAYS for task, options in of_task.items()}
    rows = [
        {
            "run": number,
            "task": _task(body),
            "model": body["description"]["model"],
            "judges": body["description"]["judges"],
            "began": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began)),
            "limit": body["description"]["options"].get("limit"),
            "options": {
                name: value for name, value in _options(body).items() if name in printed[_task(body)]
            },
            "state": _state(body, ended),
        }
        for number, body, began, ended in runs
    ]
    if form == "json":
        print_json(rows)
        return 0
    for row in rows:
        how = "".join(f", {name}={value}" for name, value in row["options"].items())
        judged = f"judged by {', '.join(row['judges'])}{row['state']}"
        print(f"{row['run']:>4}  {row['began']}  {row['task']:<22} {row['model']}{how}, {judged}")
    return 0


def _task(body: dict[str, Any]) -> str:
    return f"{body['description']['benchmark']}:{body['description']['setting']}"


def _options(body: dict[str, Any]) -> dict[str, Any]:
    """The options of a run that differ from a default, those of its sampling first.

    `augment` implies the OCR reader, which is left out.
    """
    options = body["description"]["options"]
    by = options.get("captioned_by") or {}
    found = {**(options.get("sampling") or {}), **options, "captioned_by": by.get("model", by.get("file"))}
    defaults = {"repeats": 1, "text_metrics": "none", "reader": found.get("reader")}
    return {
        name: value
        for name, value in found.items()
        if value not in (None, False, defaults.get(name)) and not isinstance(value, dict)
    }


def _varied(runs: Sequence[dict[str, Any]]) -> set[str]:
    """The names of the options in which runs differ."""
    names = {name for options in runs for name in options}
    return {name for name in names if any(options.get(name) != runs[0].get(name) for options in runs)}


def _state(body: dict[str, Any], ended: float | None) -> str:
    if ended is None:
        return " (not finished)"
    stopped = body.get("counts", {}).get("stopped")
    return f" (stopped: {stopped})" if stopped else ""
