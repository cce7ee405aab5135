"""The Python API: the commands for scripts and notebooks, as typed functions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sightline.errors import UserError
from sightline.evaluation.result import Evaluation
from sightline.evaluation.score import score_file
from sightline.evaluation.spec import (
    Names,
    RequestOptions,
    RunOptions,
    ScoreOptions,
    Spec,
    StrPath,
    SweepOptions,
    check_options,
    spec_of,
    takes,
)
from sightline.evaluation.sweep import Sweep, plan_sweep, run_sweep
from sightline.formats.jsonl import Partly
from sightline.interop.tracking import run_tracked
from sightline.metrics.significance import Comparison
from sightline.reporting.judges import JudgeReport
from sightline.reporting.tables import Tables
from sightline.types import Result

__all__ = [
    "Evaluation",
    "Sweep",
    "Tables",
    "UserError",
    "arun",
    "compare",
    "export",
    "judge_report",
    "report",
    "run",
    "score",
    "sweep",
]

RunSource = Evaluation | int | str | os.PathLike[str]
"""A run: an evaluation, the number or name of a run in the store, or the folder of results or of a sweep."""


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class _Run(RunOptions):
    show_progress: bool = False


@dataclass(frozen=True, kw_only=True)
class _Score(ScoreOptions):
    file: StrPath | None = field(default=None, kw_only=False)
    partners: Mapping[str, str] | None = None
    show_progress: bool = False


@dataclass(frozen=True, kw_only=True)
class _Sweep(SweepOptions):
    show_progress: bool = False


@takes(_Run)
def run(task: str, *, show_progress: bool = False, **options: Any) -> Evaluation:
    """Run a benchmark: send its requests to a model, judge the answers, compute the metrics.

    Example: `run("codis:no-cot", model="http://host:8000/v1#name", data="DIR", limit=20)`.

    Args:
        task: BENCHMARK or BENCHMARK:SETTING.
        show_progress: Whether to display progress on standard error.
        **options: The options of `sightline run --help`, with underscores; `model` is required.

    Returns:
        The metrics, the counts of requests, and the probes without an answer.

    Raises:
        UserError: An option, the data or an endpoint is wrong. If requests were sent before, the message says
            how many; their answers are kept.
        EnvironmentFailedError: The store or the disk failed.
    """
    return _wait(arun(task, show_progress=show_progress, **options))


@takes(_Run)
async def arun(task: str, *, show_progress: bool = False, **options: Any) -> Evaluation:
    """Run a benchmark in the caller's event loop; see `run`."""
    return await run_tracked(spec_of(task, options, RunOptions), show_progress=show_progress)


@takes(_Score)
def score(
    task: str,
    file: StrPath | None = None,
    *,
    partners: Mapping[str, str] | None = None,
    show_progress: bool = False,
    **options: Any,
) -> Evaluation:
    """Score a file of answers that any tool collected: `score("iibench:none", "predictions.jsonl")`.

    Args:
        task: BENCHMARK or BENCHMARK:SETTING.
        file: The answers, in one of the formats of `sightline score --help`; None for the field `response`
            in the lines of a groups file.
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
    return _wait(score_file(spec, None if file is None else str(file), partners, show_progress=show_progress))


@takes(_Sweep)
def sweep(task: str, *, show_progress: bool = False, **options: Any) -> Sweep:
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
        UserError: A combination cannot be prepared; no request was sent. One that is refused later has its
            `error` in `points`.
        EnvironmentFailedError: The store or the disk failed.
    """
    check_options(options, SweepOptions)
    shared = {
        name: value for name, value in options.items() if name not in ("model", "augment", "set", "gen")
    }
    base = spec_of(task, shared, RequestOptions)
    points = plan_sweep(
        [base],
        _names(options["model"]),
        _values(options.get("set")),
        _values(options.get("gen")),
        _names(options.get("augment") or ()),
    )
    return _wait(run_sweep(points, base.out, show_progress=show_progress))


def report(
    *runs: RunSource,
    store: StrPath = "sightline.db",
    by: str | None = None,
    pivot: bool = False,
    against: Names = (),
) -> Tables[list[Result]]:
    """Make the tables of runs, computed anew from the store, or of folders of results and sweeps.

    Example: `report(evaluation, "base", "results/a", by="category")`.

    Args:
        *runs: The runs; none for the latest that finished.
        store: The store of numbered and named runs.
        by: A label, or `variant`: a row for each of its values.
        pivot: Whether models are rows and varied values are columns.
        against: Rows of the paper to compare with.

    Returns:
        The tables of `sightline report`; their content are the results.

    Raises:
        UserError: There is no such run, label or row.
    """
    from sightline.evaluation.reports import report_runs

    words = [_word(run) for run in runs]
    shown = report_runs(words, _store_of(runs, store), _names(against), by=by)
    return Tables(shown.results, tuple(shown.tables(by, pivot=pivot)))


def compare(
    base: RunSource | Sequence[RunSource],
    other: RunSource | Sequence[RunSource],
    *,
    store: StrPath = "sightline.db",
    metric: Names = (),
    by: str | None = None,
    against: Names = (),
    margin: float | None = None,
) -> Tables[Comparison]:
    """Compare runs: the second minus the first on the same groups, with confidence intervals and tests.

    Example: `compare(base_evaluation, adapter_evaluation, by="style")`.

    Args:
        base: The base run, or one for each compared run.
        other: The run that is compared, or several, which are pooled.
        store: The store of numbered and named runs.
        metric: The metrics; by default the leading ones.
        by: A label: a row for each of its values.
        margin: The margin of non-inferiority and equivalence in percentage points; None without a test.

    Returns:
        The tables of `sightline compare`; their content is the comparison with all differences.

    Raises:
        UserError: A run does not exist or did not finish, or two runs share no group of the same data.
    """
    from sightline.evaluation.reports import compare_words
    from sightline.reporting.comparison import counts_table

    bases, others = ([one] if isinstance(one, _SINGLE) else list(one) for one in (base, other))
    (compared,) = compare_words(
        [_word(run) for run in bases],
        [[_word(run) for run in others]],
        _store_of([*bases, *others], store),
        metrics=_names(metric),
        by=by,
        against=_names(against),
        margin=margin,
    )
    return Tables(compared.comparison, (*compared.tables(), counts_table(compared.comparison)))


def judge_report(
    *sources: RunSource,
    human: StrPath | Sequence[StrPath] = (),
    task: str = "",
    data: StrPath | None = None,
    split: str | None = None,
    partly: Partly = "wrong",
    by: str | None = None,
    store: StrPath = "sightline.db",
) -> Tables[JudgeReport]:
    """Compare judges and text metrics with the majority of humans.

    Example: `judge_report("results/a", "results/b", human="human.jsonl")`.

    Args:
        *sources: Runs, results folders, verdicts.jsonl files, or (with `task`) answers with verdicts.
        human: Annotation projects, and files with the verdicts of humans.
        task: The task of answers in other files, whose rules judge them.
        data: With `task`: the data folder.
        split: With `task`: the split of the data.
        partly: What answers count as that humans mark partly right: `wrong`, or `left-out`.
        by: A label with a table of its own, instead of `category`.
        store: The store of runs and projects.

    Returns:
        The tables of `sightline judge-report`; their content is the report.

    Raises:
        UserError: A file is wrong, or humans or judges decided nothing.
    """
    from sightline.evaluation.judge_data import read_judge_data
    from sightline.evaluation.judge_report import judge_report as make_report
    from sightline.evaluation.judge_report import report_labels
    from sightline.reporting.judges import judge_tables

    humans = [human] if isinstance(human, str | os.PathLike) else human
    folder = None if data is None else os.fspath(data)
    spec = Spec(task=task, data=folder, split=split, store=_store_of(sources, store))
    judge_data = read_judge_data(
        [_word(one) for one in sources],
        [os.fspath(one) for one in humans],
        spec,
        partly=partly,
    )
    made = make_report(judge_data, report_labels(by, judge_data))
    return Tables(made, tuple(judge_tables(made)))


def export(
    answers: RunSource,
    layout: str,
    out: StrPath,
    *,
    data: StrPath | None = None,
    model: str = "",
    dataset: str = "",
    force: bool = False,
    store: StrPath = "sightline.db",
) -> list[str]:
    """Write answers in a format that other tools read: `export("results/a", "submission", "out.jsonl")`.

    Args:
        answers: An answers.jsonl, its results folder, or an evaluation with `out`; any run for `csv`,
            `parquet`, `inspect`, `eee` and `hf-eval-results`.
        layout: The format, one of `sightline export --help`.
        out: The file to write; for `csv` and `parquet` the folder of answers, groups and metrics.
        data: The data folder, for formats that repeat its records or images.
        model: The name of the model, for formats that hold it; by default that of the results.
        dataset: The benchmark on the Hugging Face Hub, ORG/NAME:TASK, for `hf-eval-results` and `eee`.
        force: Whether an existing file is overwritten.
        store: For formats of any run: the store of numbered and named runs.

    Returns:
        What the format cannot hold, a sentence each.

    Raises:
        UserError: The format does not exist or cannot hold the answers; nothing is written then.
    """
    from sightline.evaluation.run_tables import FORMS
    from sightline.interop.results import FORMATS, export_answers

    if layout in FORMS or layout in FORMATS:
        word, url = _word(answers), _store_of([answers], store)
    elif isinstance(answers, Evaluation) and answers.out is None:
        raise UserError("the evaluation has no results folder to export", expected="run with out=FOLDER")
    else:
        word, url = str(answers.out if isinstance(answers, Evaluation) else answers), os.fspath(store)
    folder = None if data is None else os.fspath(data)
    return export_answers(
        word, layout, os.fspath(out), url=url, data=folder, model=model, dataset=dataset, force=force
    )


_SINGLE = (Evaluation, int, str, os.PathLike)


def _store_of(runs: Sequence[RunSource], url: StrPath) -> str:
    """The store of evaluations, otherwise that of the caller.

    Evaluations of several stores cannot be used together: their numbers mean different runs.
    """
    stores = {run.store for run in runs if isinstance(run, Evaluation) and run.run is not None}
    if len(stores) > 1:
        raise UserError(
            "the evaluations are in several stores", found=", ".join(sorted(stores)), expected="one"
        )
    return next(iter(stores), os.fspath(url))


def _word(run: RunSource) -> str:
    """What names a run on the command line: its number, its name or its results folder."""
    if not isinstance(run, Evaluation):
        return str(run)
    if run.run is not None:
        return str(run.run)
    if run.out is None:
        raise UserError("the answers of the evaluation were not kept", expected="score with out=FOLDER")
    return run.out


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
    return _wait_for_thread(work)


def _wait_for_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a thread. An interrupt cancels it: nothing goes on when the cell has ended."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    async def finish() -> T:
        return await task

    def run() -> T:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(finish())

    with ThreadPoolExecutor(1, "sightline-run") as thread:
        ended = thread.submit(run)
        try:
            wait([ended])
        except KeyboardInterrupt:
            with suppress(RuntimeError):  # the loop is closed: it has ended by itself
                loop.call_soon_threadsafe(task.cancel)
            # What the cancelled work says is what it keeps.
            raise KeyboardInterrupt(str(ended.exception() or "")) from None
    return ended.result()
