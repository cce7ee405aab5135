"""`sightline quickstart`: draw small data sets and run the benchmarks on them, with nothing to download."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sightline.plan.spec import Spec
    from sightline.types import Result

MODEL, CHANCE = "mini", "baseline/chance"
ANOTHER_MODEL = "http://localhost:8000/v1#llava"
_NEEDED = ("torch", "transformers", "sentence_transformers")

EXAMPLE = """example:
  sightline quickstart --out quickstart

Draws scenes in the released layouts of CODIS, II-Bench, ConTextual and MM-R3, then runs all four with the
embedded model `mini` and with baseline/chance, which guesses. The commands that it runs are printed: use them
with a model of yours. `mini` and MM-R3 need the extra `local`; without it the others are run by guessing.
"""


class Task(NamedTuple):
    """A setting of a benchmark, the drawn data that it is run on, and the metrics that are printed of it."""

    name: str
    data: Path
    metrics: tuple[str, ...]
    split: str | None = None


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `quickstart`."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "--out", default="quickstart", metavar="DIR", help="new folder for data, store and results"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the scenes and the guesses")
    parser.add_argument(
        "--model", default=None, metavar="SPEC", help=f"the model to run beside chance (default {MODEL})"
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Draw, run, print one table of all; the worst exit status of the runs."""
    import asyncio

    from msgspec.structs import replace

    from sightline.cli.pipe import output_errors
    from sightline.cli.printing import print_run_summary
    from sightline.evaluation.run import arun
    from sightline.report.overview import overview
    from sightline.report.terminal import show

    folder = Path(options.out)
    complete = all(map(find_spec, _NEEDED))
    if not complete:
        print("without `pip install 'sightline[local]'`: no mini, and no MM-R3", file=sys.stderr)
    models = list(dict.fromkeys((options.model or (MODEL if complete else CHANCE), CHANCE)))
    _check(folder, models, options.seed)
    layouts = "CODIS, II-Bench" + (", ConTextual and MM-R3" if complete else " and ConTextual")
    _tell(f"drawing scenes in the layouts of {layouts} (not their images) into {folder / 'data'}")
    results: list[Result] = []
    status = 0
    for task in _draw(folder / "data", options.seed, mmr3=complete):
        _tell("")
        for model in models:
            spec = _spec(task, model, folder, options.seed)
            _tell(f"$ {_command(spec)}")
            evaluation = asyncio.run(arun(spec, show_progress=sys.stderr.isatty()))
            print_run_summary(replace(evaluation, out=None))
            status = max(status, evaluation.exit_status)
            results.append(_shown(evaluation.result, task))
    _tell("")
    with output_errors():
        show([overview("drawn scenes", results)])
    _tell(f"all numbers: {folder / 'results'}, a folder a run, its report.md first")
    _tell(f"next, a model of yours:\n$ {_command(_next(folder))}")
    return status


def _check(folder: Path, models: Sequence[str], seed: int) -> None:
    """Raise UserError, before anything is written, for a model there is none of, and for a folder that holds
    something else than an earlier quickstart."""
    from sightline.config import load_config
    from sightline.errors import UserError
    from sightline.formats.synthetic_marker import is_synthetic
    from sightline.models.resolve import ModelOptions, resolve

    for model in models:
        resolve(model, ModelOptions(load_config(None), seed=seed))
    drawn_before = any(map(is_synthetic, folder.glob("data/*")))
    if folder.is_dir() and any(folder.iterdir()) and not drawn_before:
        raise UserError(
            "holds something else than an earlier quickstart", file=folder, expected="a new folder for --out"
        )


def _draw(folder: Path, seed: int, *, mmr3: bool) -> list[Task]:
    """Draw the data; the tasks that are run on them."""
    from sightline.builders.synthetic import (
        generate_codis,
        generate_contextual,
        generate_iibench,
        generate_mmr3,
    )

    tasks = [
        Task("codis", generate_codis(folder / "codis", seed=seed), ("acc_p", "acc_q")),
        Task("iibench:none", generate_iibench(folder / "iibench", seed=seed), ("accuracy",), "dev"),
        Task("contextual", generate_contextual(folder / "contextual", seed=seed), ("accepted",), "val"),
    ]
    if mmr3:
        drawn = generate_mmr3(folder / "mmr3", seed=seed)
        # Whoever guesses has a high con: what is right of it says what it is worth.
        shown = ("acc", "con", "consistent_right")
        tasks += [Task(f"mmr3:{name}", drawn, shown) for name in ("rephrasing", "restyling", "context")]
    return tasks


def _spec(task: Task, model: str, folder: Path, seed: int) -> Spec:
    from sightline.plan.spec import Spec

    name = f"{task.name}-{model}".replace("/", "-").replace(":", "-")
    return Spec(
        task=task.name,
        model=model,
        data=str(task.data),
        split=task.split,
        seed=seed,
        store=str(folder / "sightline.db"),
        out=str(folder / "results" / name),
    )


def _next(folder: Path) -> Spec:
    """What to run after the quickstart: the first of its tasks, with another model."""
    from sightline.plan.spec import Spec

    return Spec(task="codis", model=ANOTHER_MODEL, data=str(folder / "data" / "codis"), out="results/llava")


def _shown(result: Result, task: Task) -> Result:
    """The result with the metrics of the table alone; the results folder has the others."""
    from msgspec.structs import replace

    return replace(
        result, metrics=[m for m in result.metrics if m.metric in task.metrics and m.subset == "all"]
    )


def _command(spec: Spec) -> str:
    """The command line that does the same."""
    from sightline.plan.spec import Spec

    words = [_program(), "run", spec.task, "--model", spec.model, "--data", str(spec.data)]
    words += ["--store", spec.store] if spec.store != Spec(task="").store else []
    words += ["--out", str(spec.out)]
    words += ["--seed", str(spec.seed)] if spec.seed else []
    words += ["--split", spec.split] if spec.split else []
    return shlex.join(words)


def _program() -> str:
    """How this shell calls `sightline`: by its name, else (where that finds none or another) as here."""
    called = Path(sys.argv[0])
    found = shutil.which("sightline")
    if called.name != "sightline" or (found and Path(found).resolve() == called.resolve()):
        return "sightline"
    return sys.argv[0]


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
