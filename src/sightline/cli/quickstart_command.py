"""`sightline quickstart`: draw small data sets and run the benchmarks on them, with nothing to download."""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sightline.evaluation.spec import Spec
    from sightline.types import Result

MODEL, CHANCE = "mini", "baseline/chance"
_NEEDED = ("torch", "transformers", "sentence_transformers")

EXAMPLE = """example:
  sightline quickstart --out quickstart

Draws scenes in the released layouts of CODIS, II-Bench and MM-R3, then runs all three with the embedded model
`mini` and with baseline/chance, which guesses. The commands that it runs are printed: use them with a model
of yours. `mini` and MM-R3 need the extra `local`; without it the other two are run by guessing alone.
"""


class Task(NamedTuple):
    """A setting of a benchmark, and the drawn data that it is run on."""

    name: str
    data: Path
    split: str | None = None


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `quickstart`."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "--out", default="quickstart", metavar="DIR", help="folder for data, store and results"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the scenes and the guesses")
    parser.add_argument(
        "--model", default=None, metavar="SPEC", help=f"the model to run beside chance (default {MODEL})"
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Draw, run, print a table a setting; the worst exit status of the runs."""
    import asyncio

    from sightline.cli.printing import print_course, print_results
    from sightline.evaluation.run import arun
    from sightline.evaluation.spec import Spec

    folder = Path(options.out)
    complete = all(map(find_spec, _NEEDED))
    if not complete:
        print("without `pip install 'sightline[local]'`: no mini, and no MM-R3", file=sys.stderr)
    asked = options.model or (MODEL if complete else CHANCE)
    models = list(dict.fromkeys((asked, CHANCE)))
    status = 0
    for task in _draw(folder / "data", options.seed, mmr3=complete):
        results = []
        for model in models:
            name = f"{task.name.replace(':', '-')}-{model.replace('/', '-').replace(':', '-')}"
            spec = Spec(
                task=task.name,
                model=model,
                data=str(task.data),
                split=task.split,
                seed=options.seed,
                store=str(folder / "sightline.db"),
                out=str(folder / "results" / name),
            )
            print(f"\n$ {_command(spec)}", file=sys.stderr)
            evaluation = asyncio.run(arun(spec, show_progress=sys.stderr.isatty()))
            print_course(evaluation)
            status = max(status, evaluation.exit_status)
            results.append(_leading(evaluation.result))
        print_results(results, "table", None)
    return status


def _draw(folder: Path, seed: int, *, mmr3: bool) -> list[Task]:
    """Draw the data; the tasks that are run on them."""
    from sightline.build.mini import draw_codis, draw_iibench, draw_mmr3

    tasks = [
        Task("codis", draw_codis(folder / "codis", seed=seed)),
        Task("iibench:none", draw_iibench(folder / "iibench", seed=seed), "dev"),
    ]
    if mmr3:
        drawn = draw_mmr3(folder / "mmr3", seed=seed)
        tasks += [Task(f"mmr3:{name}", drawn) for name in ("rephrasing", "restyling", "context")]
    return tasks


def _leading(result: Result) -> Result:
    """The result with its leading metrics alone; the folder that is printed has the others."""
    from msgspec.structs import replace

    from sightline.registry import facts

    leading = facts(result.benchmark).leading
    return replace(result, metrics=[m for m in result.metrics if m.metric in leading and m.subset == "all"])


def _command(spec: Spec) -> str:
    """The command line that does the same."""
    words = ["sightline", "run", spec.task, "--model", spec.model, "--data", str(spec.data)]
    words += ["--store", spec.store, "--out", str(spec.out)]
    words += ["--seed", str(spec.seed)] if spec.seed else []
    words += ["--split", spec.split] if spec.split else []
    return shlex.join(words)
