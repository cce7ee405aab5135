"""Answers that inspect collected, judged singly and counted by group, by the functions of `sightline score`.

All that counting needs lies in the metadata of samples and scores, so in inspect's log: the metrics can be
computed anew from a log alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
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

from sightline.benchmarks.base import Benchmark
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.evaluation.score import Read
from sightline.formats.prediction import Prediction
from sightline.images import BadImage
from sightline.judging.groups import CollectedAnswers, answered_groups
from sightline.judging.judges import AnswersByKey, Judge, ModelJudge, RulesJudge, judge_kind
from sightline.judging.measures import AnswerMeasures
from sightline.judging.panel import JudgePanel, judged_partners
from sightline.judging.similarity import similarity, vector_scorer
from sightline.judging.text_metrics import TextMeasures, identities_of, metrics_of
from sightline.models.embedder import embedder
from sightline.models.inspect import chat_messages, data_urls, generate_config, read_output
from sightline.plan.stored_probe import StoredProbe, sample_index
from sightline.registry import benchmark as find_benchmark
from sightline.results.aggregate import EvaluationDescription, aggregate
from sightline.scoring.scorer import JUDGE_SAMPLING
from sightline.types import Answer, Case, Failure, ImageFile, Labels, Outcome, Request, Result, Verdict

NO_ANSWER = "the call failed, as the sample's error says"

_VALUES = {"right": CORRECT, "wrong": INCORRECT}


class Member(Struct, frozen=True, omit_defaults=True):
    """The metadata of an inspect sample: a probe, the group it belongs to, and how many `members` that has.

    `place` is where the probe stands in the plan (`evaluation.plan.place`). `error` says why it could not be
    asked; where `pooled`, all draws of a probe are one group. `evidence` are the images that a judge of an
    answer to it is shown.
    """

    group: str
    variant: str
    cluster: str
    question: str
    place: int
    members: int
    labels: Labels = field(default_factory=dict)
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    pooled: bool = False
    error: str | None = None
    evidence: tuple[ImageFile, ...] = ()

    def row(self, draw: int, key: str) -> StoredProbe:
        """The row of one of its answers."""
        return StoredProbe(
            self.group,
            self.variant,
            draw,
            key,
            self.cluster,
            self.question,
            self.labels,
            self.references,
            self.options,
            error=self.error,
            pooled=self.pooled,
            evidence=self.evidence,
        )


class Recorded(Struct, frozen=True, omit_defaults=True):
    """The metadata of a score: the answer as it was read, and what its judge replied, if that is a model."""

    answer: Prediction
    replies: list[Prediction] = field(default_factory=list)


@scorer(metrics=[])
def verdict(description: dict[str, Any]) -> Scorer:
    """Judges one answer, by the benchmark's rules or by the model that the description names."""
    about = msgspec.convert(description, EvaluationDescription)
    benchmark = find_benchmark(about.benchmark)
    judge = judge_of(about, benchmark)
    panel = JudgePanel(benchmark=benchmark, judges=[judge])
    model = get_model(judge.name) if isinstance(judge, AnswersByModel) else None

    async def score(state: TaskState, target: Target) -> Score:
        member, read = msgspec.convert(state.metadata, Member), Read()
        answer = _prediction(member, state.epoch - 1, _result(state, member))
        row = member.row(answer.draw, read.put(about.benchmark, about.setting, answer))
        group = next(answered_groups([row], read))
        replies: list[Prediction] = []
        if model is not None:
            wanted, draw = list(panel.requests([group])), 0
            while wanted:
                for keyed in wanted:
                    reply = await _asked(model, keyed.request)
                    replies.append(_prediction(member, answer.draw, reply, keyed.request.key))
                    read.put(about.benchmark, about.setting, replies[-1])
                draw += 1
                wanted = list(panel.retry_requests([group], read, draw))
        (scored,) = panel.judge([group], read)
        return _score(scored.group.outcomes[0], Recorded(answer, replies))

    return score


@metric(scores="unreduced")
def over_groups(description: dict[str, Any], store: str) -> Metric:
    """The benchmark's metrics over all groups, with bounds and counts; epochs are draws.

    Shares are percentages 0-100. What has no value is left out, and so are groups of which not all was asked:
    inspect's own limits take samples. `store` is where embeddings and text metrics are remembered, if there
    are any.
    """
    about = msgspec.convert(description, EvaluationDescription)
    benchmark = find_benchmark(about.benchmark)
    partners = judged_partners(benchmark.metrics(about.benchmark_options))
    panel = JudgePanel(benchmark=benchmark, judges=[judge_of(about, benchmark)], judged_partners=partners)

    def measure(scores: list[SampleScore]) -> Value:
        read = Read()
        rows = _rows(about, scores, read)
        with ExitStack() as opened:
            measures = _measures(about, benchmark, store, opened)
            collected = CollectedAnswers(probes=lambda: rows, answers=read)
            return _values(aggregate(about, collected, panel, read, measures=measures).result)

    return measure


class AnswersByModel:
    """A model that is asked about single answers; comparing two is left to the benchmark's rules.

    Inspect scores sample by sample, so that nobody could be asked about two.
    """

    def __init__(self, name: str, benchmark: Benchmark, options: Any) -> None:
        self.name = name
        self._model = ModelJudge(name, f"inspect {name}", benchmark, options, JUDGE_SAMPLING)
        self._rules = RulesJudge(benchmark, options)

    def request(self, case: Case, draw: int = 0) -> KeyedRequest | None:
        """The judge prompt about a single answer."""
        return self._model.request(case, draw) if case.question == "correct" else None

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """What the model replied about a single answer, or what the rules say of two."""
        judge = self._model if case.question == "correct" else self._rules
        return judge.decide(case, replies)


def judge_of(about: EvaluationDescription, benchmark: Benchmark) -> Judge:
    """The one judge that a description names."""
    (name,) = about.judges
    if judge_kind(name) == "rules":
        return RulesJudge(benchmark, about.benchmark_options)
    return AnswersByModel(name, benchmark, about.benchmark_options)


def _result(state: TaskState, member: Member) -> Answer | Failure:
    """What came of a sample; the output of one that failed, or could not be asked, is empty."""
    if state.output.empty:
        return Failure("permanent", member.error or state.output.error or NO_ANSWER)
    return read_output(state.output, str(state.model))


async def _asked(model: Model, request: Request) -> Answer | Failure:
    try:
        images = data_urls(request)
    except BadImage as error:
        return Failure("permanent", str(error))
    messages = chat_messages(request.messages, images)
    config = generate_config(request.sampling, request.draw)
    return read_output(await model.generate(messages, config=config), str(model))


def _prediction(member: Member, draw: int, result: Answer | Failure, key: str = "") -> Prediction:
    """An answer to a probe, or, under the key of what it was asked, a judge's reply about one."""
    if isinstance(result, Failure):
        return Prediction(member.group, member.variant, "", draw, error=result.message, key=key)
    return Prediction(
        member.group,
        member.variant,
        result.text,
        draw,
        key=key,
        finish_reason=result.finish_reason,
        version=result.version,
        usage=result.usage,
    )


def _score(outcome: Outcome, recorded: Recorded) -> Score:
    return Score(
        value=_VALUES.get(outcome.verdict, NOANSWER),
        answer=outcome.extracted or outcome.response,
        explanation=f"{outcome.verdict}, says {outcome.judge}" if outcome.judge else outcome.verdict,
        metadata=msgspec.to_builtins(recorded),
    )


def _rows(about: EvaluationDescription, scores: Iterable[SampleScore], read: Read) -> list[StoredProbe]:
    """The rows of all groups that were asked in full, in the order of the plan."""
    found = []
    for one in scores:
        member = msgspec.convert(one.sample_metadata, Member)
        recorded = msgspec.convert(one.score.metadata, Recorded)
        for reply in recorded.replies:
            read.put(about.benchmark, about.setting, reply)
        answer = recorded.answer
        found.append((member, member.row(answer.draw, read.put(about.benchmark, about.setting, answer))))
    found.sort(key=_order)
    asked = Counter((row.sample, row.draw) for _, row in found)
    return [row for member, row in found if asked[row.sample, row.draw] == member.members]


def _order(found: tuple[Member, StoredProbe]) -> tuple[int, int, int]:
    """By sample; then draw by draw, or, where all draws of a probe are one group, probe by probe."""
    member, row = found
    inner = (member.place, row.draw) if row.pooled else (row.draw, member.place)
    return sample_index(member.place), *inner


def _measures(
    about: EvaluationDescription, benchmark: Benchmark, store: str, opened: ExitStack
) -> AnswerMeasures:
    """The similarity of answers and their text metrics, where there are any; only then is there a store."""
    similar, texts, metrics = None, None, metrics_of(about.benchmark_options)
    if metrics or vector_scorer(benchmark, about.benchmark_options) is not None:
        remembered = Store.open(store)
        opened.callback(remembered.close)
        if vector_scorer(benchmark, about.benchmark_options) is not None:
            made = embedder(about.benchmark_options["embedder"])
            similar = similarity(benchmark, about.benchmark_options, made.identity, lambda: made, remembered)
        if metrics:
            texts = TextMeasures(identities_of(metrics), metrics.__getitem__, remembered)
    return AnswerMeasures(similarity=similar, texts=texts)


def _values(result: Result) -> dict[str, str | int | float | bool | None]:
    """The metrics over all as inspect shows them: value, bounds and n by name, then counts of all probes."""
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
