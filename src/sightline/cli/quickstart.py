"""`sightline quickstart`: run the benchmarks on the small synthetic data sets of the package."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sightline.errors import EnvironmentFailedError
from sightline.text import print_note

if TYPE_CHECKING:
    from sightline.evaluation.spec import Spec
    from sightline.types import Result

MODEL, CHANCE = "mini", "baseline/chance"
ANOTHER_MODEL = "http://localhost:8000/v1#llava"
_NEEDED = ("torch", "transformers", "sentence_transformers")
_WEB = ("jinja2", "starlette", "uvicorn")
STORE = "sightline.db"
REPHRASED = "mmr3:rephrasing"
GROUPS = 6
"""The groups of each benchmark in the report."""

EXAMPLE = """example:
  sightline quickstart --out quickstart

Unpacks synthetic scenes in the released formats of CODIS, II-Bench, ConTextual and MM-R3, then runs the
four benchmarks with the embedded model `mini` and with baseline/chance, which guesses. It prints the commands
that it runs; use them with your model. `mini` and MM-R3 need the extra `local`; without it, only
baseline/chance runs the others. With the extra `web`, it writes report.html, a report of all runs.
"""


class Task(NamedTuple):
    """A task, its synthetic data, and the metrics that the table shows."""

    name: str
    data: Path
    metrics: tuple[str, ...]
    split: str | None = None


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "--out",
        default="quickstart",
        metavar="DIR",
        help="new folder for data, store and results (default: quickstart)",
    )
    parser.add_argument(
        "--model",
        default=None,
        metavar="SPEC",
        help=f"model to compare with baseline/chance (default: {MODEL})",
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Generate, run and print one table of all runs; returns their worst exit status."""
    import asyncio

    from msgspec.structs import replace

    from sightline.cli.printing import output_errors, print_run_summary
    from sightline.evaluation.run import run_evaluation
    from sightline.reporting.table import show
    from sightline.reporting.tables import overview

    folder = Path(options.out)
    complete = all(map(find_spec, _NEEDED))
    if not complete:
        _report("mini and MM-R3 are left out: they need `pip install 'sightline[local]'`")
    models = list(dict.fromkeys((options.model or (MODEL if complete else CHANCE), CHANCE)))
    _check(folder, models)
    layouts = "CODIS, II-Bench" + (", ConTextual and MM-R3" if complete else " and ConTextual")
    _report(f"synthetic scenes in the formats of {layouts}, not their images, are in {folder / 'data'}")
    results: list[Result] = []
    runs: dict[int, Spec] = {}
    status = 0
    for task in _unpack(folder / "data", mmr3=complete):
        _report("")
        for model in models:
            spec = _spec(task, model, folder)
            _report(f"$ {_command(spec)}")
            evaluation = asyncio.run(run_evaluation(spec, show_progress=sys.stderr.isatty()))
            print_run_summary(replace(evaluation, out=None))
            status = max(status, evaluation.exit_status)
            results.append(_with_metrics(evaluation.result, task))
            if evaluation.run is not None:
                runs[evaluation.run] = spec
    _report("")
    with output_errors():
        show([overview("synthetic scenes", results)])
    _report(f"all results: {folder / 'results'}, with a folder and a report.md for each run")
    _write_report(folder, list(runs))
    _report_groups(folder, runs, models[0])
    _report("next, run your model:")
    _report(f"$ {_command(_next(folder))}")
    return status


def _write_report(folder: Path, runs: Sequence[int]) -> None:
    """Write the report of all runs, and say how to look at every group; both need the extra `web`."""
    from sightline.store.store import Store
    from sightline.viewer.opened import write_html

    if not all(map(find_spec, _WEB)):
        _report("for an HTML report and the viewer, install the extra: pip install 'sightline[web]'")
        return
    location = str(folder / STORE)
    store = Store.open(location, create=False)
    try:
        write_html(store, runs, folder / "report.html", groups=GROUPS)
    finally:
        store.close()
    print_note(f"report: {folder / 'report.html'}")
    _report("to look at every group and compare the models in your browser:")
    _report(f"$ {shlex.join([_program(), 'serve', '--store', location])}")


def _report_groups(folder: Path, runs: Mapping[int, Spec], model: str) -> None:
    """Say how to look at the groups of the model in the terminal: of MM-R3 if it ran."""
    of_model = [run for run, spec in runs.items() if spec.model == model]
    if not of_model:
        return
    run = max(of_model, key=lambda number: runs[number].task == REPHRASED)
    words = [_program(), "show", str(run), "--inconsistent", "-n", "3", "--store", str(folder / STORE)]
    _report(
        f"the groups, at most three, on which {model} is most inconsistent in run {run} ({runs[run].task}):"
    )
    _report(f"$ {shlex.join(words)}")


def _check(folder: Path, models: Sequence[str]) -> None:
    """Raise UserError for an unknown model, and for a folder with other content than a quickstart's."""
    from sightline.config import load_config
    from sightline.errors import UserError
    from sightline.formats.files import is_synthetic
    from sightline.models.registry import ModelOptions, resolve

    for model in models:
        resolve(model, ModelOptions(load_config(None)))
    is_quickstart = any(map(is_synthetic, folder.glob("data/*")))
    if folder.is_dir() and any(folder.iterdir()) and not is_quickstart:
        raise UserError(
            "has other content than an earlier quickstart", file=folder, expected="a new folder for --out"
        )


def _unpack(folder: Path, *, mmr3: bool) -> list[Task]:
    """Unpack the data, which training/scenes drew; returns the tasks that run on them."""
    from importlib.resources import files
    from zipfile import ZipFile

    with files("sightline.data").joinpath("quickstart.zip").open("rb") as file, ZipFile(file) as archive:
        wanted = [name for name in archive.namelist() if mmr3 or not name.startswith("mmr3/")]
        try:
            archive.extractall(folder, wanted)
        except OSError as error:
            raise EnvironmentFailedError(f"{folder} cannot be written ({error.strerror})") from None
    tasks = [
        Task("codis", folder / "codis", ("acc_p", "acc_q")),
        Task("iibench:none", folder / "iibench", ("accuracy",), "dev"),
        Task("contextual", folder / "contextual", ("accepted",), "val"),
    ]
    if mmr3:
        # A model that guesses has a high con: the share of consistent right answers puts it into perspective.
        metrics = ("acc", "con", "consistent_right")
        tasks += [
            Task(f"mmr3:{name}", folder / "mmr3", metrics) for name in ("rephrasing", "restyling", "context")
        ]
    return tasks


def _spec(task: Task, model: str, folder: Path) -> Spec:
    from sightline.evaluation.spec import Spec

    name = f"{task.name}-{model}".replace("/", "-").replace(":", "-")
    return Spec(
        task=task.name,
        model=model,
        data=str(task.data),
        split=task.split,
        store=str(folder / STORE),
        out=str(folder / "results" / name),
    )


def _next(folder: Path) -> Spec:
    """The suggested next run: the first task with another model."""
    from sightline.evaluation.spec import Spec

    return Spec(task="codis", model=ANOTHER_MODEL, data=str(folder / "data" / "codis"), out="results/llava")


def _with_metrics(result: Result, task: Task) -> Result:
    """The result with the metrics of the table only; the results folder has the others."""
    from msgspec.structs import replace

    return replace(
        result, metrics=[m for m in result.metrics if m.metric in task.metrics and m.subset == "all"]
    )


def _command(spec: Spec) -> str:
    from sightline.evaluation.spec import Spec

    words = [_program(), "run", spec.task, "--model", spec.model, "--data", str(spec.data)]
    words += ["--store", spec.store] if spec.store != Spec(task="").store else []
    words += ["--out", str(spec.out)]
    words += ["--split", spec.split] if spec.split else []
    return shlex.join(words)


def _program() -> str:
    """The word that calls this `sightline`: its name if the shell finds it by that, otherwise its path."""
    called = Path(sys.argv[0])
    found = shutil.which("sightline")
    if called.name != "sightline" or (found and Path(found).resolve() == called.resolve()):
        return "sightline"
    return sys.argv[0]


def _report(line: str) -> None:
    print_note(line)
