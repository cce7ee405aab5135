"""Scoring answers that any tool collected: no model is called except judges."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import FILE, Benchmark, Setting
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.released import cluster_of, inspect_sample
from sightline.engine.limits import Account, Counts
from sightline.errors import UserError, unknown_name
from sightline.evaluation.judges import check_judge_options, judge_kind
from sightline.evaluation.options import (
    EvaluationDescription,
    effective,
    reasoning_names,
    setting_of,
    split_of,
    variant_of,
)
from sightline.evaluation.plan import (
    CollectedAnswers,
    StoredProbe,
    answered_groups,
    judge_images,
    probe_position,
    sample_digest,
    stored_groups,
    stored_probe,
    with_images_of,
)
from sightline.evaluation.prepare import (
    Prepared,
    PreparedTask,
    check_results_folder,
    describe_evaluation,
    prepare_evaluation,
    with_notes,
)
from sightline.evaluation.recorded_run import recorded_run, run_body, store_recorded_verdicts
from sightline.evaluation.result import Evaluation, judge_and_write
from sightline.evaluation.spec import Spec, spec_data_folder
from sightline.evaluation.summary import recorded_notes
from sightline.formats.columns import check_scores, score_of
from sightline.formats.jsonl import ANSWERS, METRICS, as_answered, as_asked, read_run_metadata, sent_messages
from sightline.formats.other_tools import of_model, read_predictions
from sightline.formats.prediction import FILE_MODEL, Prediction, match
from sightline.store.answers import key_of
from sightline.store.database import run_in_thread
from sightline.store.runs import PROBES_PER_CHUNK
from sightline.store.store import Store
from sightline.types import NOT_SENT, Answer, Failure, Outcome, Probe, Sample, Verdict

PredictionsByProbe = Mapping[tuple[str, str, int], Prediction]
"""Predictions by sample, variant and draw."""


PROBES_PER_TRANSACTION = 16 * PROBES_PER_CHUNK
"""The number of probes that are encoded and stored together."""


class _SettingAnswers(NamedTuple):
    """The probes of a setting by sample, and the answers that a file holds under it."""

    probes: Mapping[str, Sequence[Probe]]
    predictions: PredictionsByProbe


class _Scoring(NamedTuple):
    """Everything that scoring reads before it asks a judge."""

    prepared: Prepared
    description: EvaluationDescription
    collected: CollectedAnswers
    file: str


async def score_file(
    spec: Spec, file: str | None, partners: Mapping[str, str] | None = None, *, show_progress: bool = False
) -> Evaluation:
    """Score a file of predictions in any layout that `formats` reads.

    Args:
        file: The predictions; None for the lines of a groups file that hold a response.
        partners: Files of predictions under other settings, by setting.
    """
    scoring = await run_in_thread(_read_all, spec, file, partners or {})
    prepared, description = scoring.prepared, scoring.description
    store = await run_in_thread(Store.open, spec.store)
    try:
        async with recorded_run(prepared, description, store, scoring.file) as recorded:
            run = recorded.number
            await run_in_thread(_store_probes, store, run, scoring)
            await run_in_thread(store_recorded_verdicts, prepared, store, run)
            notes, counts = await _ask_judges(scoring, store, run, show_progress=show_progress)
            description = with_notes(description, notes)
            evaluation = await judge_and_write(
                prepared,
                description,
                scoring.collected,
                store,
                show_progress=show_progress,
                explain=spec.explain,
            )
            await run_in_thread(store.runs.finish, run, run_body(prepared, description, scoring.file))
        moved = await run_in_thread(recorded.move_name)
    finally:
        await run_in_thread(store.close)
    return replace(evaluation, run=run, judge_counts=counts, name_moved=moved)


def _store_probes(store: Store, run: int, scoring: _Scoring) -> None:
    numbered = (
        (probe_position(sample, number), msgspec.json.encode(probe))
        for sample, (_, probes) in enumerate(groupby(scoring.collected.probes(), key=lambda one: one.sample))
        for number, probe in enumerate(probes)
    )
    while several := list(islice(numbered, PROBES_PER_TRANSACTION)):
        store.runs.add_probes(run, several)


async def _ask_judges(
    scoring: _Scoring, store: Store, run: int, *, show_progress: bool
) -> tuple[list[str], Counts]:
    """Ask the judge models, if there are any; returns what was noted meanwhile."""
    prepared, measures = scoring.prepared, scoring.prepared.measures
    if not (prepared.judges.models or measures.embedder or measures.text_metrics):
        return [], Counts()
    from sightline.evaluation.sending import RequestSender  # the engine is loaded where something is sent

    sender = RequestSender(prepared, store, Account(), show_progress=show_progress)
    with sender.late_errors(f"run {run}, not finished"):
        async with sender:
            counts = await sender.ask_judges(scoring.collected)
    return sender.notes, counts


def _read_all(spec: Spec, file: str | None, partners: Mapping[str, str]) -> _Scoring:
    """Check the evaluation, read each file once and render each probe once. Raises UserError."""
    benchmark = find_benchmark(spec.task.partition(":")[0])
    setting = setting_of(benchmark, spec.task)
    # An answer without a variant belongs to the only variant of a setting, if all its probes share one.
    variant = spec.set.get("variant", variant_of(benchmark, setting))
    derived: Mapping[str, Any]
    has_file = file is not None
    if file is None:
        if spec.columns:
            raise UserError("--columns names columns of a file of answers", expected="FILE, or no --columns")
        own = benchmark.own_answers(spec_data_folder(spec), effective(benchmark, setting, spec).benchmark)
        file, predictions = str(own[0]), own[1]
        derived = {}
    else:
        predictions = of_model(read_answers(spec, benchmark, variant, Path(file)), spec.model, Path(file))
        # By the names of its own layouts, a benchmark cannot read questions from a file with other columns.
        by_name = not spec.columns or benchmark.answer_files.any_task
        folder = spec_data_folder(spec)
        derived = benchmark.options_from_answers(file, predictions, folder) if by_name else {}
    spec = dataclasses.replace(
        spec, model=spec.model or f"{FILE_MODEL}{Path(file).name}", set={**derived, **spec.set}
    )
    prepared = prepare_evaluation(
        spec, calls_model=False, answers=predictions if derived else None, own_answers=not has_file
    )
    check_judge_options(spec.judge, prepared.task.options.benchmark)
    task, needed = prepared.task, prepared.task.partners
    for name in partners:
        if name not in needed:
            raise unknown_name(f"setting that {task.name} needs", name, needed)
    check_setting(Path(file), benchmark, task.setting, task.options.benchmark)
    for name, other in partners.items():
        setting_name = name if name in benchmark.settings else task.setting
        check_setting(Path(other), benchmark, setting_name, needed[name])
    settings = {task.setting: _matched(prepared, task.setting, file, task.options.benchmark, predictions)}
    for name, other in partners.items():
        read = read_answers(spec, benchmark, needed[name].get("variant", name), Path(other))
        chosen = of_model(read, spec.model, Path(other))
        settings[name] = _matched(prepared, name, other, needed[name], chosen)
    matched = list(settings[task.setting].predictions.values())
    for name, judge in prepared.judges.recorded.items():
        if judge_kind(name) == "tool":
            check_scores(predictions, Path(file))
            judge.add(tool_verdicts(name, matched, task.benchmark.name, task.setting, Path(file)))
    answers = FileAnswers()
    stored = [_answered(probe, answers) for probe in _stored_probes(prepared, settings, answers)]
    notes = recorded_notes(_recorded(settings[task.setting]), task.name, spec.repeated)
    description = describe_evaluation(prepared, notes)
    check_results_folder(spec, description, Path(file))
    collected = CollectedAnswers(probes=lambda: stored, answers=answers, reasoning_tags=reasoning_names(spec))
    return _Scoring(prepared, description, collected, os.path.abspath(file))


def _answered(probe: StoredProbe, answers: FileAnswers) -> StoredProbe:
    """A probe with the answer that the file holds, so that a run and its later reports read the same."""
    found = answers.look_up([probe.key]).get(probe.key)
    partners = {
        name: tuple(_answered(one, answers) for one in probes) for name, probes in probe.partners.items()
    }
    if isinstance(found, Answer):
        return replace(probe, partners=partners, answer=found)
    if found is not None:
        return replace(probe, partners=partners, failure=found)
    return replace(probe, partners=partners, error=probe.error or NOT_SENT)


def _matched(
    prepared: Prepared,
    setting: str,
    file: str,
    options: Mapping[str, Any],
    predictions: Sequence[Prediction],
) -> _SettingAnswers:
    """The answers in a file by probe; the file may hold answers to samples that are not selected."""
    spec, task = prepared.spec, prepared.task
    probes = {sample.id: list(task.benchmark.probes(sample, options)) for sample in task.samples}
    left_out: set[str] = set()
    if spec.limit is not None or spec.ids:
        left_out = {sample.id for sample in task.samples.unselected()}
        left_out -= probes.keys()
    answered = {prediction.sample for prediction in predictions}
    expected = [
        (probe.sample, probe.variant) for sample in _scored(prepared, answered) for probe in probes[sample.id]
    ]
    if not expected:
        raise UserError(
            f"the probes of setting '{setting}' cannot be derived from the answers",
            file=file,
            expected="--data DIR, which contains them",
        )
    selected = [prediction for prediction in predictions if prediction.sample not in left_out]
    matched = match(selected, expected, file=Path(file), allow_missing=spec.allow_missing)
    known = {(probe.sample, probe.variant): probe.options for some in probes.values() for probe in some}
    return _SettingAnswers(
        probes, {key: as_answered(found, known[key[:2]]) for key, found in matched.items()}
    )


def _recorded(setting: _SettingAnswers) -> Iterator[tuple[Probe, Prediction]]:
    probes = {(probe.sample, probe.variant): probe for some in setting.probes.values() for probe in some}
    for (sample, variant, _), prediction in setting.predictions.items():
        yield probes[sample, variant], prediction


def read_answers(spec: Spec, benchmark: Benchmark, variant: str, file: Path) -> list[Prediction]:
    """The answers in a file, of all models; `variant` is that of answers that name none."""
    return read_predictions(
        file,
        benchmark.answer_files,
        setting=variant,
        allow_missing=spec.allow_missing,
        questions="data" if _has_data(spec, benchmark) else "file",
        repeated=spec.repeated,
        columns=spec.columns,
        scores_only=all(judge_kind(judge) == "tool" for judge in spec.judge),
    )


def tool_verdicts(
    tool: str, predictions: Sequence[Prediction], benchmark: str, setting: str, file: Path
) -> list[Verdict]:
    """The scores that the tool of a file gave its answers; an answer that it did not score is unscored."""
    others = {one.scores.tool for one in predictions if one.scores} - {tool}
    if others or all(score_of(one) is None for one in predictions):
        raise UserError(
            f"is a file of {min(others)}" if others else "holds no score of each answer",
            file=file,
            expected=f"--judge {min(others)}"
            if others
            else "a number from 0 to 1 in each record, or --columns score=FIELD",
        )
    return [
        _tool_verdict(tool, one, prediction_key(benchmark, setting, one))
        for one in predictions
        if one.error is None or score_of(one) is not None
    ]


def _tool_verdict(tool: str, one: Prediction, key: str) -> Verdict:
    """Right with the full score; what is between counts in the metric `score`."""
    score = score_of(one)
    return Verdict(
        targets=(key,),
        question="correct",
        scorer=tool,
        judge=tool,
        kind="tool",
        verdict="unscored" if score is None else "right" if score == 1 else "wrong",
        value=score,
        extracted=one.scores.extracted if one.scores else None,
        variant=one.variant,
        scores={} if score is None else {"score": score},
    )


def _has_data(spec: Spec, benchmark: Benchmark) -> bool:
    """Whether the questions are in data, and not only in the file of answers."""
    file = {**setting_of(benchmark, spec.task).options, **spec.set}.get("file")
    return spec_data_folder(spec) is not None or file is not None


def _stored_probes(
    prepared: Prepared, settings: Mapping[str, _SettingAnswers], answers: FileAnswers
) -> Iterator[StoredProbe]:
    """The probes of all samples, in the form in which a run stores them; adds their answers."""
    predictions = settings[prepared.task.setting].predictions
    draws = sorted({draw for _, _, draw in predictions}) or [0]
    for sample in _scored(prepared, {sample for sample, _, _ in predictions}):
        yield from _stored_sample(prepared.task, sample, settings, draws, answers)


def _scored(prepared: Prepared, answered: Collection[str]) -> Iterator[Sample]:
    """The samples that are scored: all, or those that have an answer."""
    for sample in prepared.task.samples:
        if sample.id in answered or not prepared.spec.only_answered:
            yield sample


def _stored_sample(
    task: PreparedTask,
    sample: Sample,
    settings: Mapping[str, _SettingAnswers],
    draws: Sequence[int],
    answers: FileAnswers,
) -> Iterator[StoredProbe]:
    probes = {setting: answered.probes[sample.id] for setting, answered in settings.items()}
    files = inspect_sample(sample, probes[task.setting])
    cluster = cluster_of(sample, files)

    digest = sample_digest(task.benchmark, sample, files)
    names = [(sample.id, probe.variant, draws[0]) for probe in probes[task.setting]]
    recorded = _recorded_digest(settings[task.setting].predictions, names)
    digest = with_images_of(digest, recorded) if task.folder is not None else recorded or digest

    def store(setting: str, probe: Probe, draw: int) -> StoredProbe:
        prediction = settings[setting].predictions.get((probe.sample, probe.variant, draw))
        if prediction is None:
            key = key_of(f"missing {probe.sample} {probe.variant} {draw}".encode())
            error = "the file contains no answer to this probe"
            return stored_probe(replace(probe, messages=()), draw, key, cluster, digest, error=error)
        key = answers.add(task.benchmark.name, setting, prediction)
        asked = as_asked(probe, prediction)
        evidence = judge_images(probe, files)
        return stored_probe(asked, draw, key, cluster, digest, evidence=evidence, recorded=prediction)

    return stored_groups(probes, draws, store)


def _recorded_digest(predictions: PredictionsByProbe, names: Sequence[tuple[str, str, int]]) -> str:
    """The digest of a sample as its answers record it; '' if they do not.

    Samples that come from a file of answers lack a part of what was asked, so that their own digest differs.
    """
    recorded = (predictions[name].sample_digest for name in names if name in predictions)
    return next(filter(None, recorded), "")


# -- Answers from the file of another tool, as outcomes without verdicts, and the verdicts of the file


class ImportedAnswer(Struct, frozen=True, kw_only=True):
    """An answer that is not judged yet, and the verdicts that its file gives on it.

    `model` is the name of the model, '' if the file does not name one.
    """

    outcome: Outcome
    model: str
    verdicts: tuple[Verdict, ...]


class _Match(NamedTuple):
    """An answer of the file with its probe and cluster; without a data folder there is no probe."""

    prediction: Prediction
    probe: Probe | None
    cluster: str


def import_answers(spec: Spec, predictions: Sequence[Prediction], file: Path) -> list[ImportedAnswer]:
    """Turn predictions into outcomes, model by model.

    With a data folder the ids are checked against it, the questions, labels and references are added, and
    the order is that of the data. Otherwise the order is that of the file.
    """
    benchmark = find_benchmark(spec.task.partition(":")[0])
    setting = setting_of(benchmark, spec.task)
    by_model: dict[str, list[Prediction]] = {}
    for prediction in predictions:
        by_model.setdefault(prediction.model, []).append(prediction)
    if spec_data_folder(spec) is None:
        matches = [
            _Match(as_answered(answer, ()), None, answer.cluster or answer.image or answer.sample)
            for answers in by_model.values()
            for answer in answers
        ]
        return list(_imported(benchmark.name, setting.name, matches, reasoning_names(spec)))
    samples = _clustered_probes(spec, benchmark, setting)
    expected = [(probe.sample, probe.variant) for _, probes in samples for probe in probes]
    matches = []
    for answers in by_model.values():
        matched = match(answers, expected, file=file, allow_missing=spec.allow_missing)
        draws = sorted({answer.draw for answer in answers})
        for cluster, probes in samples:
            for draw, probe in ((draw, probe) for draw in draws for probe in probes):
                answer = matched.get((probe.sample, probe.variant, draw))
                if answer is not None:
                    matches.append(_Match(as_answered(answer, probe.options), probe, cluster))
    return list(_imported(benchmark.name, setting.name, matches, reasoning_names(spec)))


def _clustered_probes(spec: Spec, benchmark: Benchmark, setting: Setting) -> list[tuple[str, list[Probe]]]:
    """The cluster and the probes of each sample, in the order of the data."""
    options = effective(benchmark, setting, spec).benchmark
    samples = benchmark.samples(spec_data_folder(spec), split_of(benchmark, spec), options)
    return [
        (cluster_of(sample, inspect_sample(sample)), list(benchmark.probes(sample, options)))
        for sample in samples
    ]


def _imported(
    benchmark: str, setting: str, matches: Iterable[_Match], tags: Sequence[str]
) -> Iterator[ImportedAnswer]:
    answers = FileAnswers()
    matches = list(matches)
    stored = [
        stored_probe(
            _asked(match),
            match.prediction.draw,
            answers.add(benchmark, setting, match.prediction),
            match.cluster,
            recorded=match.prediction,
        )
        for match in matches
    ]
    outcomes = (outcome for group in answered_groups(stored, answers, tags) for outcome in group)
    for (prediction, _, _), outcome in zip(matches, outcomes, strict=True):
        verdicts = (
            replace(verdict, targets=(outcome.key,), variant=outcome.variant)
            for verdict in prediction.verdicts
        )
        if outcome.status == "empty":  # wrong without a judge, but `import` does not judge
            outcome = replace(outcome, verdict="unscored")
        yield ImportedAnswer(outcome=outcome, model=prediction.model, verdicts=tuple(verdicts))


def _asked(match: _Match) -> Probe:
    """The probe of an answer, with the question and the order of options that the file gives."""
    answer = match.prediction
    if match.probe is not None:
        return as_asked(match.probe, answer)
    return Probe(
        answer.sample,
        answer.variant,
        sent_messages(answer),
        answer.question,
        options=answer.options,
        references=answer.references,
        labels=answer.labels,
        context=answer.context,
    )


# -- Answers that were read from a file, looked up by key as those of the store are


class FileAnswers:
    """Answers from a file, by the keys made for them."""

    def __init__(self) -> None:
        self._by_key: dict[str, Answer | Failure] = {}

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """The answers under some keys."""
        return {key: self._by_key[key] for key in keys if key in self._by_key}

    def add(self, benchmark: str, setting: str, prediction: Prediction) -> str:
        """Add an answer; nothing is kept of a probe that was not sent."""
        key = prediction_key(benchmark, setting, prediction)
        if prediction.error == NOT_SENT:
            return key
        result = _result(prediction)
        if self._by_key.setdefault(key, result) != result:
            raise UserError(
                "two different answers have the same key",
                record=prediction.sample,
                field="key",
                found=key,
                expected="the keys of one answers.jsonl, or none",
            )
        return key


def prediction_key(benchmark: str, setting: str, prediction: Prediction) -> str:
    """The key of an answer from a file."""
    probe = [benchmark, setting, prediction.sample, prediction.variant, prediction.draw]
    model = [prediction.model] if prediction.model else []
    return prediction.key or key_of(repr([*probe, prediction.response, *model]).encode())


def _result(prediction: Prediction) -> Answer | Failure:
    if prediction.error is not None:
        return Failure("permanent", prediction.error)
    return Answer(
        prediction.response,
        reasoning=prediction.reasoning,
        finish_reason=prediction.finish_reason,
        usage=prediction.usage,
        version=prediction.version or prediction.model,
    )


def check_setting(file: Path, benchmark: Benchmark, setting: str, options: Mapping[str, Any]) -> None:
    """Check that the results folder of a file names the setting under which the file is scored.

    Options that make a task of their own (`Benchmark.task_arguments`) are compared too. The name of a
    setting that is a file is not compared: the file may have moved.
    """
    run = read_run_metadata(file.parent) if file.name == ANSWERS else None
    if run is None:
        return
    run_setting = setting if FILE in benchmark.settings and run.benchmark == benchmark.name else run.setting
    answered = _task_name(run.benchmark, run_setting, benchmark.task_arguments(run.options))
    scored = _task_name(benchmark.name, setting, benchmark.task_arguments(options))
    if answered != scored:
        raise UserError(
            f"these answers belong to {answered}, as {METRICS} in the same folder says",
            file=file,
            expected=f"{answered} instead of {scored}",
        )


def _task_name(benchmark: str, setting: str, arguments: str) -> str:
    return f"{benchmark}:{setting} {arguments}".rstrip()
