"""The store that is shown: the user's, or a temporary one with the runs of results folders and files."""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.released import add_published
from sightline.errors import UserError, needs_extra
from sightline.evaluation.folder import read_judged_run
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.options import EvaluationDescription, setting_of, variant_of
from sightline.evaluation.runs import name_or_number
from sightline.evaluation.score import score_file
from sightline.evaluation.spec import Decide, Spec
from sightline.formats.jsonl import METRICS, VERDICTS, is_run_name, read_recorded_verdicts
from sightline.formats.other_tools import read_predictions
from sightline.store.database import NoStoreError
from sightline.store.store import Store
from sightline.text import print_note
from sightline.types import Group, Result, Verdict
from sightline.viewer.index import OutcomeIndex, index_run


@contextmanager
def opened_store(
    url: str, paths: Sequence[Path], data: Sequence[Path], task: AnswerTask | None = None
) -> Iterator[Store]:
    """Open what is shown; `task` is what files answer, None if there are none."""
    with tempfile.TemporaryDirectory(prefix="sightline-") as scratch:
        temporary = str(Path(scratch, "results.db"))
        if paths:
            store = Store.open(temporary)
        else:
            try:
                store = Store.open(url, create=False)
            except NoStoreError:
                if not data:
                    raise
                store = Store.open(temporary)
        try:
            for path in paths:
                if path.is_file():
                    score_into(store, path, task, data)
                else:
                    for folder in _folders(path):
                        import_results(store, folder, data)
            with indexable(store) as shown:
                yield shown
        finally:
            store.close()


@contextmanager
def indexable(store: Store) -> Iterator[Store]:
    """Give a store to which an index can be added: a copy of one that cannot be written.

    The copy refuses whatever is no index and no cache.
    """
    if not store.database.is_read_only:
        yield store
        return
    print_note(f"{store.name} cannot be written: its state of now is shown, and nothing can be saved")
    with tempfile.TemporaryDirectory(prefix="sightline-") as scratch:
        path = Path(scratch, "copy.db")
        copy = store.guarded_copy(path)
        try:
            yield copy
        finally:
            copy.close()


def _folders(path: Path) -> Sequence[Path]:
    """The results folder at a path, or those in a folder."""
    nested = [file.parent for pattern in ("*", "*/*") for file in path.glob(f"{pattern}/{METRICS}")]
    return [path] if (path / METRICS).is_file() else sorted(nested) or [path]


# -- Opens results folders: each becomes a run of a store, with an index of its lines and without requests


def import_results(store: Store, folder: Path, data: Sequence[Path] = ()) -> int:
    """Make a run of a results folder, and index it; its note names the folder.

    The run has the time of its files, and the name of the folder where that can be a name.
    """
    judged = read_judged_run(folder)
    by_answer = _verdicts_by_answer(read_recorded_verdicts(folder / VERDICTS))
    body = {
        "description": msgspec.to_builtins(_description(judged.result)),
        "folders": [str(one.resolve()) for one in data],
    }
    run = store.runs.start(body, created=(folder / METRICS).stat().st_mtime)
    store.runs.finish(run, body)
    with OutcomeIndex(store).builder(run) as builder:
        for group in judged.groups.values():
            builder.add(JudgedGroup(group, _verdicts_of(group, by_answer)))
        builder.finish(judged.result)
    store.labels.set_note(run, str(folder))
    name = folder.resolve().name
    if is_run_name(name):
        store.labels.give_name(run, name)
    return run


def _description(result: Result) -> EvaluationDescription:
    options = find_benchmark(result.benchmark).options
    names, _, decides = result.judge.partition(" (decides: ")
    decide: Decide = "majority" if decides.startswith("majority") else "first"
    return EvaluationDescription(
        benchmark=result.benchmark,
        setting=result.setting,
        model=result.model,
        identity=result.model_identity,
        judges=tuple(names.split(", ")),
        decide=decide,
        benchmark_options={name: result.options[name] for name in options if name in result.options},
        options=result.options,
        data_digest=result.data_digest,
        planned_samples=result.samples,
        notes=result.notes,
        ids_digest=result.ids_digest,
    )


def _verdicts_by_answer(verdicts: Iterable[Verdict]) -> Mapping[str, Mapping[int, Verdict]]:
    """Answer key -> the verdicts about it, with the numbers of their lines."""
    found: defaultdict[str, dict[int, Verdict]] = defaultdict(dict)
    for number, verdict in enumerate(verdicts):
        for target in verdict.targets:
            found[target][number] = verdict
    return found


def _verdicts_of(group: Group, by_answer: Mapping[str, Mapping[int, Verdict]]) -> list[Verdict]:
    """The verdicts about answers of a group, in the order of their lines.

    Samples that share requests repeat their verdicts: equal ones count once.
    """
    numbered: dict[int, Verdict] = {}
    for outcome in group:
        numbered |= by_answer.get(outcome.key, {})
    distinct: list[Verdict] = []
    for _, verdict in sorted(numbered.items(), key=itemgetter(0)):
        if verdict not in distinct:
            distinct.append(verdict)
    return distinct


# -- Answers that another tool collected, judged by the rules: a run for each model of the file


class AnswerTask(NamedTuple):
    """What answers are to: the task, and the split of its data (None for the benchmark's first)."""

    task: str
    split: str | None = None


def score_into(store: Store, file: Path, task: AnswerTask | None, data: Sequence[Path]) -> None:
    """Score a file by rules, as `sightline score --allow-missing` does; without data it holds them itself."""
    if task is None:
        raise UserError(
            "is a file: it does not say which questions it answers",
            file=file,
            expected="--task BENCHMARK:SETTING (see `sightline list`), and --data DIR; or a results folder",
        )
    benchmark = find_benchmark(task.task.partition(":")[0])
    variant = variant_of(benchmark, setting_of(benchmark, task.task))
    answers = read_predictions(file, benchmark.answer_files, setting=variant, allow_missing=True)
    for model in dict.fromkeys(answer.model for answer in answers):
        spec = Spec(
            task=task.task,
            split=task.split,
            data=str(data[0]) if data else None,
            model=model,
            allow_missing=True,
            store=store.name,
        )
        scored = asyncio.run(score_file(spec, str(file)))
        if scored.run is not None:
            store.labels.set_note(scored.run, str(file))


# -- Runs of a store as one HTML file


def write_html(
    store: Store,
    numbers: Sequence[int],
    file: Path,
    *,
    folders: Sequence[Path] = (),
    groups: int | None = None,
    against: Sequence[str] = (),
) -> list[Result]:
    """Index the runs and write their report.

    Without `groups`, each part has the default number; without `against`, the published rows of each run.
    """
    with needs_extra("web", "a report as HTML needs Jinja2"):
        from sightline.viewer.html_report import GROUPS, ReportedRun, write_report
    index = OutcomeIndex(store, folders)
    runs = []
    for number in numbers:
        index_run(index, store, number)
        result = index.open(number).result
        result = add_published(result, *against) if against else result
        runs.append(ReportedRun(number, name_or_number(store, number), result))
    today = datetime.now().astimezone().strftime("%d %B %Y").lstrip("0")
    write_report(index, runs, file, date=today, groups=GROUPS if groups is None else groups)
    return [run.result for run in runs]
