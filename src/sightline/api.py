"""The Python API: the words of the command line as functions, in scripts and in notebooks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sightline.errors import UserError, unknown_name
from sightline.evaluation.run import Evaluation
from sightline.evaluation.run import arun as _arun
from sightline.evaluation.score import ascore as _ascore
from sightline.evaluation.sweep import Sweep, asweep, plan_sweep
from sightline.plan.spec import Spec

__all__ = ["Evaluation", "Sweep", "UserError", "arun", "run", "score", "sweep"]

T = TypeVar("T")


def run(task: str, *, model: str, judge: str | Sequence[str] = "rules", **options: Any) -> Evaluation:
    """Run a benchmark: `run("codis:no-cot", model="http://host:8000/v1#name", data="DIR")`.

    Options are those of the command line with underscores: data, split, limit, shuffle, repeats, seed,
    concurrency, store, out, against, set, gen, preset, model_args, judge_gen, decide, fresh, model_id,
    retry_errors, max_requests, max_cost, config, augment, captioner, captions, fail_if (a list); and
    `progress=True`. Raises UserError where the call or the data is wrong.
    """
    return _wait(arun(task, model=model, judge=judge, **options))


async def arun(task: str, *, model: str, judge: str | Sequence[str] = "rules", **options: Any) -> Evaluation:
    """The async form of `run`."""
    progress = bool(options.pop("progress", False))
    return await _arun(_spec(task=task, model=model, judges=_names(judge), **options), show_progress=progress)


def score(
    task: str,
    file: str | Path,
    *,
    judge: str | Sequence[str] = "rules",
    partners: Mapping[str, str] | None = None,
    **options: Any,
) -> Evaluation:
    """Score a file of answers that any tool collected: `score("iibench:none", "predictions.jsonl")`.

    `partners` maps other settings to files with their answers, for the metrics that need them. Other
    options as for `run`, and `allow_missing`.
    """
    progress = bool(options.pop("progress", False))
    spec = _spec(task=task, judges=_names(judge), **options)
    return _wait(_ascore(spec, str(file), partners, show_progress=progress))


def sweep(
    task: str,
    *,
    models: str | Sequence[str],
    judge: str | Sequence[str] = "rules",
    set: Mapping[str, Any] | None = None,  # noqa: A002
    gen: Mapping[str, Any] | None = None,
    augment: str | Sequence[str] = (),
    **options: Any,
) -> Sweep:
    """Run every combination: `sweep("codis", models=["a", "b"], gen={"temperature": [0.2, 0.7, 1]})`.

    A list under `set` or `gen` holds values to vary; anything else is one value (a value that is a list
    itself stands in another list); `augment` is one way to tell images in words, or several. Other
    options as for `run`; `max_requests` and `max_cost` hold over all, `out` receives a folder a point,
    sweep.json and sweep.md. Raises UserError before the first call where anything is wrong with any
    combination.
    """
    progress = bool(options.pop("progress", False))
    base = _spec(task=task, judges=_names(judge), **options)
    points = plan_sweep(base, _names(models), _values(set), _values(gen), _names(augment))
    return _wait(asweep(points, base.out, show_progress=progress))


def _values(options: Mapping[str, Any] | None) -> dict[str, tuple[Any, ...]]:
    return {
        name: tuple(value) if isinstance(value, list | tuple) else (value,)
        for name, value in (options or {}).items()
    }


def _spec(**options: Any) -> Spec:
    """The options as a Spec, their names and types checked."""
    known = Spec.__struct_fields__
    for name in options:
        if name not in known:
            raise unknown_name("option", name, known)
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    try:
        return msgspec.convert(plain, Spec)
    except msgspec.ValidationError as error:
        raise UserError(str(error), expected="the types of the command line's options") from None


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; on a thread of its own where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
