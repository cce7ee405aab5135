"""Scorer and metrics of inspect tasks: judge single answers, count them by group, as `sightline score` does.

The metadata of samples and scores holds everything that counting needs, so inspect can recompute the metrics
from a log alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
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
from inspect_ai.solver import TaskState
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.evaluation.judges import (
    AnswersByKey,
    Judge,
    JudgePanel,
    ModelJudge,
    RulesJudge,
    judge_kind,
    make_panel,
)
from sightline.evaluation.measures import NO_MEASURES, AnswerMeasures, answer_measures, prepare_measures
from sightline.evaluation.options import EvaluationDescription, JudgeModel
from sightline.evaluation.plan import CollectedAnswers, StoredProbe, answered_groups, sample_index
from sightline.evaluation.result import aggregate
from sightline.evaluation.score import FileAnswers
from sightline.formats.prediction import Prediction
from sightline.images import BadImage
from sightline.models.inspect import chat_messages, data_urls, generate_config, read_output
from sightline.scoring.scorer import JUDGE_SAMPLING
from sightline.store.answers import KeyedRequest
from sightline.store.database import run_in_thread
from sightline.store.store import Store
from sightline.types import Answer, Case, Failure, Group, Outcome, Request, Result, Verdict

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
        return _score(judged.group.outcomes[0], ScoreMetadata(answer, replies))

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
            return _values(aggregate(evaluation, collected, panel, answers, measures=measures).result)

    return measure


class SingleAnswerJudge:
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


def _score(outcome: Outcome, metadata: ScoreMetadata) -> Score:
    return Score(
        value=_VALUES.get(outcome.verdict, NOANSWER),
        answer=outcome.extracted or outcome.response,
        explanation=f"{outcome.verdict}, decided by {outcome.judge}" if outcome.judge else outcome.verdict,
        metadata=msgspec.to_builtins(metadata),
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
        yield answer_measures(benchmark, options, measures, store)
    finally:
        store.close()


def _values(result: Result) -> dict[str, str | int | float | bool | None]:
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
