"""The Python API: run, score and sweep as typed functions, for scripts and notebooks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar, Unpack

from sightline.errors import UserError
from sightline.evaluation.evaluation import Evaluation
from sightline.evaluation.run import run_evaluation
from sightline.evaluation.score import score_file
from sightline.evaluation.sweep import Sweep, run_sweep
from sightline.evaluation.sweep_plan import plan_sweep
from sightline.plan.spec import (
    RequestOptions,
    RunOptions,
    ScoreOptions,
    StrPath,
    SweepOptions,
    check_options,
    spec_of,
)

__all__ = ["Evaluation", "Sweep", "UserError", "arun", "run", "score", "sweep"]

T = TypeVar("T")


def run(task: str, *, show_progress: bool = False, **options: Unpack[RunOptions]) -> Evaluation:
    """Run a benchmark: send its requests to a model, judge the answers, compute the metrics.

    Example: `run("codis:no-cot", model="http://host:8000/v1#name", data="DIR", limit=20)`.

    Args:
        task: BENCHMARK or BENCHMARK:SETTING.
        show_progress: Whether to display progress on standard error.
        **options: The options of `sightline run --help`, with underscores; `model` is required.

    Returns:
        The metrics, the counts of requests, and the probes without an answer.

    Raises:
        UserError: An option or the data is wrong; no request was sent.
        EnvironmentFailedError: The store or the disk failed.
    """
    return _wait(arun(task, show_progress=show_progress, **options))


async def arun(task: str, *, show_progress: bool = False, **options: Unpack[RunOptions]) -> Evaluation:
    """Run a benchmark in the caller's event loop; see `run`.

    Args:
        task: BENCHMARK or BENCHMARK:SETTING.
        show_progress: Whether to display progress on standard error.
        **options: The options of `run`.

    Returns:
        As `run` does.
    """
    return await run_evaluation(spec_of(task, options, RunOptions), show_progress=show_progress)


def score(
    task: str,
    file: StrPath,
    *,
    partners: Mapping[str, str] | None = None,
    show_progress: bool = False,
    **options: Unpack[ScoreOptions],
) -> Evaluation:
    """Score a file of answers that any tool collected: `score("iibench:none", "predictions.jsonl")`.

    Args:
        task: BENCHMARK or BENCHMARK:SETTING.
        file: The answers, in one of the formats of `sightline score --help`.
        partners: Answers under other settings, for metrics that need them: setting -> file.
        show_progress: Whether to display progress on standard error.
        **options: The options of `sightline score --help`, with underscores.

    Returns:
        The metrics, and the probes without an answer.

    Raises:
        UserError: An option, the file or the data is wrong.
        EnvironmentFailedError: The store or the disk failed.
    """
    spec = spec_of(task, options, ScoreOptions)
    return _wait(score_file(spec, str(file), partners, show_progress=show_progress))


def sweep(task: str, *, show_progress: bool = False, **options: Unpack[SweepOptions]) -> Sweep:
    """Run every combination of models and values of options.

    Example: `sweep("codis", model=["a", "b"], gen={"temperature": [0.2, 0.7, 1]})`.

    Args:
        task: BENCHMARK or BENCHMARK:SETTING.
        show_progress: Whether to display progress on standard error.
        **options: The options of `sightline sweep --help`, with underscores. A list under `set` or `gen`
            holds the values to vary (put a value that is a list into another list); `model` and `augment`
            take one name or several. `max_requests` and `max_cost` limit the whole sweep. `out` receives a
            folder for each combination, sweep.json and sweep.md.

    Returns:
        The combinations, in the order in which they ran.

    Raises:
        UserError: A combination is wrong; no request was sent.
        EnvironmentFailedError: The store or the disk failed.
    """
    check_options(options, SweepOptions)
    shared = {
        name: value for name, value in options.items() if name not in ("model", "augment", "set", "gen")
    }
    base = spec_of(task, shared, RequestOptions)
    points = plan_sweep(
        base,
        _names(options["model"]),
        _values(options.get("set")),
        _values(options.get("gen")),
        _names(options.get("augment", ())),
    )
    return _wait(run_sweep(points, base.out, show_progress=show_progress))


def _values(options: Mapping[str, Any] | None) -> dict[str, tuple[Any, ...]]:
    return {
        name: tuple(value) if isinstance(value, list | tuple) else (value,)
        for name, value in (options or {}).items()
    }


def _names(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, on a thread of its own if an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    results: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(asyncio.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
