"""Benchmarks as tasks of inspect_ai: `inspect eval sightline/codis --model ... -T data=DIR`.

Inspect finds them by the entry point `inspect_ai` of this package. A probe is a sample of inspect, a draw
is an epoch. `-T` takes data, setting, split, judge, seed, store, and benchmark options as `set_NAME`.
"""

from __future__ import annotations

import mimetypes
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import Model, get_model
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    NOANSWER,
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from msgspec import Struct, field
from msgspec.structs import replace
from rich.markup import escape

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.released import cluster_of, inspect_sample
from sightline.errors import UserError, unknown_name
from sightline.evaluation.judges import (
    AnswersByKey,
    Judge,
    JudgePanel,
    ModelJudge,
    RulesJudge,
    can_decide,
    check_judge_kinds,
    judge_kind,
    make_panel,
)
from sightline.evaluation.measures import NO_MEASURES, AnswerMeasures, answer_measures, prepare_measures
from sightline.evaluation.options import EvaluationDescription, JudgeModel
from sightline.evaluation.plan import (
    CollectedAnswers,
    StoredProbe,
    answered_groups,
    judge_images,
    probe_position,
    sample_digest,
    sample_index,
    stored_probe,
)
from sightline.evaluation.prepare import Prepared, PreparedTask, prepare_evaluation
from sightline.evaluation.result import aggregate
from sightline.evaluation.score import FileAnswers
from sightline.evaluation.spec import Spec, TaskOptions, declared_options, spec_of
from sightline.formats.prediction import Prediction
from sightline.images import MEDIA_TYPES, BadImage, ImageLimits, data_url, inspect_image, transform_for
from sightline.models.inspect import chat_messages, data_urls, generate_config, read_output
from sightline.scoring.scorer import JUDGE_SAMPLING
from sightline.store.answers import KeyedRequest
from sightline.store.database import run_in_thread
from sightline.store.store import Store
from sightline.types import (
    Answer,
    Case,
    Failure,
    Group,
    ImageFile,
    ImageRef,
    Outcome,
    Probe,
    Request,
    Result,
    Verdict,
)

SET = "set_"
OPTIONS = tuple(option.name for option in declared_options(TaskOptions) if option.name != "set")
"""The task arguments that are options of `sightline run` by the same name."""


@task
def codis(**arguments: Any) -> Task:
    """CODIS: one image and one question under two contexts."""
    return _task("codis", arguments)


@task
def iibench(**arguments: Any) -> Task:
    """II-Bench: the implied meaning of images."""
    return _task("iibench", arguments)


@task
def mmr3(**arguments: Any) -> Task:
    """MM-R3: consistency under rephrasing, restyling and masking."""
    return _task("mmr3", arguments)


@task
def contextual(**arguments: Any) -> Task:
    """ConTextual: instructions that need the text in an image and its visual context."""
    return _task("contextual", arguments)


@task
def groups(file: str, **arguments: Any) -> Task:
    """The questions of a groups file."""
    return _task("groups", {**arguments, "setting": file})


@solver
def ask() -> Solver:
    """Ask the model, unless an image of the probe is broken."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state if state.metadata["probe"].get("error") else await generate(state)

    return solve


def _task(benchmark: str, arguments: Mapping[str, Any]) -> Task:
    """The task; a wrong argument becomes inspect's own error, one message without a traceback."""
    try:
        return _checked_task(benchmark, arguments)
    except UserError as error:
        raise PrerequisiteError(escape(str(error))) from None


def _checked_task(benchmark: str, arguments: Mapping[str, Any]) -> Task:
    judge = str(arguments.get("judge", "rules"))
    prepared = prepare_evaluation(_spec(benchmark, arguments), calls_model=False)
    item = prepared.task
    _check_judge(item, judge)
    if item.options.benchmark.get("answer_by") == "likelihood":
        raise UserError(
            "inspect's models do not report how likely an answer is", expected="set_answer_by=text"
        )
    description: dict[str, Any] = msgspec.to_builtins(_describe(prepared, judge))
    return Task(
        dataset=MemoryDataset(list(_samples(item)), name=item.name),
        solver=ask(),
        scorer=verdict(description),
        metrics=[over_groups(description, prepared.spec.store)],
        config=generate_config(item.options.sampling),
        # A call that fails counts as an error, and the other samples go on.
        score_on_error=True,
    )


def _describe(prepared: Prepared, judge: str) -> EvaluationDescription:
    """The evaluation without its model, which inspect names."""
    item = prepared.task
    return EvaluationDescription(
        benchmark=item.benchmark.name,
        setting=item.setting,
        model="",
        identity="",
        judges=(judge,),
        decide="first",
        benchmark_options=item.options.benchmark,
        options={},
        data_digest=prepared.survey.data_digest,
        planned_samples=prepared.survey.samples,
    )


def _spec(benchmark: str, arguments: Mapping[str, Any]) -> Spec:
    """The task arguments as the options of an evaluation. Raises UserError."""
    names = (*OPTIONS, "setting", f"{SET}NAME")
    for name in arguments:
        if name not in names and not name.startswith(SET):
            raise unknown_name("task argument", name, names)
    setting = arguments.get("setting")
    # The judge is left out: inspect calls it, and has names of its own for models.
    options = {
        name: value
        for name, value in arguments.items()
        if name in OPTIONS and name != "judge" and value is not None
    }
    benchmark_options = {
        name.removeprefix(SET): value for name, value in arguments.items() if name.startswith(SET)
    }
    task_name = benchmark if setting is None else f"{benchmark}:{setting}"
    return spec_of(task_name, {**options, "set": benchmark_options}, TaskOptions)


def _check_judge(item: PreparedTask, judge: str) -> None:
    """Raise UserError for a judge that cannot decide which answers are right, or cannot be called."""
    if judge_kind(judge) == "human":
        raise UserError(
            "humans do not judge while inspect runs", expected="sightline score --judge human:FILE"
        )
    check_judge_kinds(item.benchmark, (judge,), item.options.benchmark)
    if not can_decide(item.benchmark, judge, "correct", item.options.benchmark):
        raise UserError(
            f"the judge '{judge}' cannot decide every answer of {item.benchmark.name}", expected="judge=rules"
        )
    if judge_kind(judge) == "model":
        try:
            get_model(judge)
        except ValueError as error:
            raise UserError(
                f"judge={judge}: {error}", expected="PROVIDER/NAME, as inspect takes it"
            ) from None


def _samples(item: PreparedTask) -> Iterator[Sample]:
    """A sample of inspect for each probe, in the order of the plan."""
    for number, sample in enumerate(item.samples):
        probes = list(item.benchmark.probes(sample, item.options.benchmark))
        files = inspect_sample(sample, probes)
        cluster = cluster_of(sample, files)
        for position, probe in enumerate(probes):
            evidence = judge_images(probe, files)
            stored = stored_probe(probe, 0, "", cluster, evidence=evidence)
            stored = replace(stored, sample_digest=sample_digest(item.benchmark, sample, files))
            yield _sample(probe, SampleMetadata(stored, probe_position(number, position), len(probes)))


def _sample(probe: Probe, metadata: SampleMetadata) -> Sample:
    content: str | list[Any]
    try:
        content = chat_messages(probe.messages, _images(probe))
    except BadImage as error:
        content = probe.question
        metadata = replace(metadata, probe=replace(metadata.probe, error=str(error)))
    return Sample(
        id=f"{probe.sample}/{probe.variant}",
        input=content,
        target=list(probe.references),
        metadata=msgspec.to_builtins(metadata),
    )


def _images(probe: Probe) -> dict[str, str]:
    """The path or data URL of each image of a probe. Raises BadImage."""
    parts: Iterable[Any] = (part for message in probe.messages for part in message.parts)
    return {
        part.path: _image_address(inspect_image(part, {})) for part in parts if isinstance(part, ImageRef)
    }


def _image_address(file: ImageFile) -> str:
    """The path, which inspect reads when it sends the image; a data URL if the file's suffix is wrong."""
    transform = transform_for(file, ImageLimits())
    guessed_type = mimetypes.guess_type(file.path, strict=False)[0]
    if not transform and guessed_type == MEDIA_TYPES[file.format]:
        return os.path.abspath(file.path)
    return data_url(replace(file, transform=transform)).decode()


# -- The verdicts and metrics of the tasks, as scores of inspect

NO_ANSWER = "the call failed; the error of the sample says why"

_VALUES = {"right": CORRECT, "wrong": INCORRECT}


class SampleMetadata(Struct, frozen=True):
    """The metadata of an inspect sample: one probe and its group.

    `probe` is the record that a run stores, without draw and key: each epoch is a draw, and gets its own.
    `position` is that of the probe in the plan, `group_size` the number of probes of its sample.
    """

    probe: StoredProbe
    position: int
    group_size: int

    def stored(self, draw: int, key: str) -> StoredProbe:
        """The record of one draw, from 0."""
        return replace(self.probe, draw=draw, key=key)


class ScoreMetadata(Struct, frozen=True, omit_defaults=True):
    """The metadata of a score: the answer, and the replies of the judge if it is a model."""

    answer: Prediction
    replies: list[Prediction] = field(default_factory=list)


@scorer(metrics=[])
def verdict(description: dict[str, Any]) -> Scorer:
    """Judge one answer, by the rules of the benchmark or by the model that the description names."""
    evaluation = msgspec.convert(description, EvaluationDescription)
    benchmark = find_benchmark(evaluation.benchmark)
    judge = make_judge(evaluation, benchmark)
    panel = JudgePanel(benchmark=benchmark, judges=[judge])
    model = get_model(judge.name) if isinstance(judge, SingleAnswerJudge) else None

    async def score(state: TaskState, target: Target) -> Score:
        metadata, answers = msgspec.convert(state.metadata, SampleMetadata), FileAnswers()
        answer = _prediction(metadata.stored(state.epoch - 1, ""), _result(state, metadata))
        key = answers.add(evaluation.benchmark, evaluation.setting, answer)
        group = next(answered_groups([metadata.stored(answer.draw, key)], answers))
        replies: list[Prediction] = []
        if model is not None:
            async for reply in _replies(model, panel, group, answers):
                replies.append(_prediction(metadata.stored(answer.draw, ""), *reply))
                answers.add(evaluation.benchmark, evaluation.setting, replies[-1])
        (judged,) = await run_in_thread(list, panel.judge([group], answers))
        return score_of(judged.group.outcomes[0], msgspec.to_builtins(ScoreMetadata(answer, replies)))

    return score


@metric(scores="unreduced")
def over_groups(description: dict[str, Any], store: str) -> Metric:
    """Count the metrics of the benchmark over all groups, with confidence intervals; epochs are draws.

    Proportions are percentages, 0-100. Undefined metrics are left out, and so are groups of which some probe
    was not asked: the limits of inspect count samples, not groups.
    """
    evaluation = msgspec.convert(description, EvaluationDescription)
    benchmark, options = find_benchmark(evaluation.benchmark), evaluation.benchmark_options
    panel = make_panel(benchmark, options, [make_judge(evaluation, benchmark)])

    def measure(scores: list[SampleScore]) -> Value:
        answers = FileAnswers()
        probes = _stored_probes(evaluation, scores, answers)
        collected = CollectedAnswers(probes=lambda: probes, answers=answers)
        with _measures(evaluation, benchmark, store) as measures:
            return shown_values(aggregate(evaluation, collected, panel, answers, measures=measures).result)

    return measure


class SingleAnswerJudge(Judge):
    """A model that judges single answers; the rules of the benchmark compare answers.

    Inspect scores sample by sample, so a model cannot be asked about two answers.
    """

    def __init__(self, name: str, benchmark: Benchmark, options: Any) -> None:
        self.name = name
        model = JudgeModel(f"inspect {name}", JUDGE_SAMPLING)
        self._model = ModelJudge(name, model, benchmark, options)
        self._rules = RulesJudge(benchmark, options)
        self.repeats = self._model.repeats
        self.max_attempts = self._model.max_attempts

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        """The judge prompt about a single answer; None for a comparison. Attempts count from 0."""
        return self._model.request(case, repeat, attempt) if case.question == "correct" else None

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """The verdict of the model on a single answer, or of the rules on a comparison."""
        judge = self._model if case.question == "correct" else self._rules
        return judge.decide(case, replies)


def make_judge(evaluation: EvaluationDescription, benchmark: Benchmark) -> Judge:
    (name,) = evaluation.judges
    if judge_kind(name) == "rules":
        return RulesJudge(benchmark, evaluation.benchmark_options)
    return SingleAnswerJudge(name, benchmark, evaluation.benchmark_options)


def _result(state: TaskState, metadata: SampleMetadata) -> Answer | Failure:
    """The answer of a sample. The output is empty if the call failed, or the probe could not be asked."""
    if state.output.empty:
        return Failure("permanent", metadata.probe.error or state.output.error or NO_ANSWER)
    return read_output(state.output, str(state.model))


async def _replies(
    model: Model, panel: JudgePanel, group: Group, answers: FileAnswers
) -> AsyncIterator[tuple[Answer | Failure, str]]:
    """Ask a judge model about a group, again while its replies hold no verdict: each reply and its key.

    The caller adds each reply to the answers, where the next attempt looks it up.
    """
    attempt, requests = 0, await run_in_thread(list, panel.requests([group]))
    while requests:
        for keyed in requests:
            yield await _generate(model, keyed.request), keyed.request.key
        attempt += 1
        requests = await run_in_thread(list, panel.retry_requests([group], answers, attempt))


async def _generate(model: Model, request: Request) -> Answer | Failure:
    try:
        images = await run_in_thread(data_urls, request)
    except BadImage as error:
        return Failure("permanent", str(error))
    messages = chat_messages(request.messages, images)
    config = generate_config(request.sampling, request.draw)
    return read_output(await model.generate(messages, config=config), str(model))


def _prediction(probe: StoredProbe, result: Answer | Failure, key: str = "") -> Prediction:
    if isinstance(result, Failure):
        return Prediction(
            probe.sample, probe.variant, response="", draw=probe.draw, error=result.message, key=key
        )
    return Prediction(
        probe.sample,
        probe.variant,
        response=result.text,
        draw=probe.draw,
        key=key,
        finish_reason=result.finish_reason,
        version=result.version,
        usage=result.usage,
    )


def score_of(outcome: Outcome, metadata: dict[str, Any]) -> Score:
    return Score(
        # The score that the tool of a file gave: a part of the full one, too.
        value=outcome.scores.get("score", _VALUES.get(outcome.verdict, NOANSWER)),
        answer=outcome.extracted or outcome.response,
        explanation=f"{outcome.verdict}, decided by {outcome.judge}" if outcome.judge else outcome.verdict,
        metadata=metadata,
    )


def _stored_probes(
    evaluation: EvaluationDescription, scores: Iterable[SampleScore], answers: FileAnswers
) -> list[StoredProbe]:
    """The probes of all complete groups, in the order of the plan; adds their answers."""
    members: list[tuple[SampleMetadata, StoredProbe]] = []
    for one in scores:
        metadata = msgspec.convert(one.sample_metadata, SampleMetadata)
        recorded = msgspec.convert(one.score.metadata, ScoreMetadata)
        for reply in recorded.replies:
            answers.add(evaluation.benchmark, evaluation.setting, reply)
        key = answers.add(evaluation.benchmark, evaluation.setting, recorded.answer)
        members.append((metadata, metadata.stored(recorded.answer.draw, key)))
    members.sort(key=_order)
    sizes = Counter((probe.sample, probe.draw) for _, probe in members)
    return [probe for metadata, probe in members if sizes[probe.sample, probe.draw] == metadata.group_size]


def _order(member: tuple[SampleMetadata, StoredProbe]) -> tuple[int, int, int]:
    """By sample; then draw by draw, or, where draws are pooled, probe by probe."""
    metadata, probe = member
    inner = (metadata.position, probe.draw) if probe.pooled else (probe.draw, metadata.position)
    return sample_index(metadata.position), *inner


@contextmanager
def _measures(
    evaluation: EvaluationDescription, benchmark: Benchmark, store_url: str
) -> Iterator[AnswerMeasures]:
    """The similarity and text metrics of an evaluation; the store is opened only if it uses any."""
    options = evaluation.benchmark_options
    measures = prepare_measures(benchmark, options)
    if not measures.embedder and not measures.text_metrics:
        yield NO_MEASURES
        return
    store = Store.open(store_url)
    try:
        yield answer_measures(benchmark, options, *measures, store)
    finally:
        store.close()


def shown_values(result: Result) -> dict[str, str | int | float | bool | None]:
    """The metrics over all groups as inspect shows them: values, bounds and n by name, then counts."""
    values: dict[str, str | int | float | bool | None] = {}
    for one in result.metrics:
        if one.subset == "all" and one.value is not None:
            bounds = {"low": one.low, "high": one.high, "n": one.n}
            values[one.metric] = one.value
            values.update(
                {f"{one.metric}_{name}": bound for name, bound in bounds.items() if bound is not None}
            )
    counts: Sequence[str] = ("samples", "probes", "errors", "misses", "undecided", "unscored", "truncated")
    return values | {name: getattr(result, name) for name in (*counts, "judge_errors")}
