"""The judges of an evaluation: the benchmark's rules, models, and humans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.engine.keys import KeyedRequest, with_key
from sightline.errors import UserError
from sightline.images import ImageLimits, transform_for
from sightline.plugins import wrong_return
from sightline.scoring.scorer import ModelScorer, Reading, RuleScorer, by_question
from sightline.types import NOT_SENT, Answer, Case, Failure, ImageFile, JudgeKind, Request, Verdict

AnswersByKey = Mapping[str, Answer | Failure]
"""Answers and failures by key; a missing key was not sent."""

UNREADABLE_IMAGE = "the image for the judge cannot be read"
"""The error of a judge that needs the image of a case."""

HUMAN_PREFIX = "human:"
"""A judge `human:FILE` is a file of human verdicts, `human:PROJECT` an annotation project of the store."""


class JudgeModel(Struct, frozen=True):
    """A model that judges: its identity, its sampling options and its limits of images.

    The store keeps it for each run.
    """

    identity: str
    sampling: Mapping[str, Any]
    limits: ImageLimits = field(default_factory=ImageLimits)


class Judge(Protocol):
    """Decides cases, if necessary with the replies of a model."""

    name: str
    repeats: int = 1
    """How often this judge is asked about a case."""
    max_attempts: int = 1
    """The number of requests that this judge sends at most in each repeat; 0 if it asks no model."""

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        """The request that this judge sends to a model before it can decide.

        Args:
            repeat: The repeat, from 0.

        Returns:
            The request; None if there is none to send.
        """

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """Decide a case.

        Returns:
            The verdicts: none if the judge cannot decide this question, several if it is several humans, one
            for each repeat of a model.
        """


class RulesJudge(Judge):
    """The benchmark's own rules."""

    name = "rules"
    max_attempts = 0

    def __init__(self, benchmark: Benchmark, options: Mapping[str, Any]) -> None:
        self._scorers = by_question(benchmark.scorers(options), RuleScorer)

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        """Rules send no request."""
        return None

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """The verdict of the rules, if the benchmark has rules for this question."""
        scorer = self._scorers.get(case.question)
        if scorer is None:
            return []
        reading = scorer.decide(case)
        if not isinstance(reading, Reading):
            raise wrong_return(scorer.decide, reading, Reading)
        return [_verdict(case, reading, scorer.name, self.name, "rules")]


class ModelJudge(Judge):
    """A model that receives the benchmark's judge prompts.

    It does not decide whether an answer without a reference is correct.
    """

    def __init__(
        self, name: str, model: JudgeModel, benchmark: Benchmark, options: Mapping[str, Any], repeats: int = 1
    ) -> None:
        self.name = name
        self.repeats = repeats
        self._model = model
        self._scorers = by_question(benchmark.scorers(options), ModelScorer)
        self.max_attempts = max((scorer.max_attempts for scorer in self._scorers.values()), default=1)

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        """The judge prompt for this case; its reply is cached like any answer.

        Each request of a case has its own draw, which does not depend on the number of repeats.
        """
        scorer = self._scorer(case)
        if scorer is None or attempt >= scorer.max_attempts or (scorer.needs_images and not case.images):
            return None
        messages = scorer.ask(case)
        images = {file.path: self._transformed(file) for file in case.images if scorer.needs_images}
        draw = repeat * self.max_attempts + attempt
        return with_key(Request("", messages, self._model.sampling, images, draw), self._model.identity)

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """The verdict in the replies of each repeat.

        It is `undecided` if no reply of the repeat holds one, `error` if there is no reply.
        """
        scorer = self._scorer(case)
        if scorer is None:
            return []
        return [self._decide_once(case, scorer, replies, repeat) for repeat in range(self.repeats)]

    def _decide_once(self, case: Case, scorer: ModelScorer, replies: AnswersByKey, repeat: int) -> Verdict:
        for attempt in range(scorer.max_attempts):
            keyed = self.request(case, repeat, attempt)
            if keyed is None:
                reply: Answer | Failure | None = Failure("permanent", UNREADABLE_IMAGE)
            else:
                reply = replies.get(keyed.request.key)
            if isinstance(reply, Answer):
                reading, version = scorer.read(reply.text), reply.version
            elif attempt == 0:
                reading, version = Reading("error", reply.message if reply is not None else NOT_SENT), ""
            else:
                break
            draw = repeat * self.max_attempts + attempt
            verdict = _verdict(case, reading, scorer.name, self.name, "model")
            verdict = replace(verdict, draw=draw, version=version)
            if reading.verdict != "undecided":
                break
        return verdict

    def _scorer(self, case: Case) -> ModelScorer | None:
        """The scorer that asks a model about this case; None if there is none."""
        if case.question == "correct" and not case.references:
            return None
        return self._scorers.get(case.question)

    def _transformed(self, file: ImageFile) -> ImageFile:
        return replace(file, transform=transform_for(file, self._model.limits))


class HumanJudge(Judge):
    """Humans whose verdicts a file or an annotation project holds."""

    max_attempts = 0

    def __init__(self, name: str, verdicts: Sequence[Verdict]) -> None:
        self.name = name
        self.verdicts = verdicts
        self.is_sample = any(verdict.inclusion is not None for verdict in verdicts)
        self.matched = 0
        self._by_case: dict[tuple[str, tuple[str, ...]], list[Verdict]] = defaultdict(list)
        for verdict in verdicts:
            self._by_case[verdict.question, verdict.targets].append(verdict)

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        """Humans receive no request."""
        return None

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """The verdicts of all humans on this case; two answers may be compared in either order."""
        verdicts = self._by_case.get((case.question, case.targets)) or self._by_case.get(
            (case.question, case.targets[::-1]), []
        )
        fitting = [verdict for verdict in verdicts if verdict.variant in ("", case.variant)]
        self.matched += len(fitting)
        return [replace(verdict, variant=case.variant) for verdict in fitting]


def judge_kind(judge: str) -> JudgeKind:
    if judge == "rules":
        return "rules"
    return "human" if judge.startswith(HUMAN_PREFIX) else "model"


def check_judge_kinds(benchmark: Benchmark, judges: Sequence[str]) -> None:
    """Refuse a kind of judge that the benchmark does not accept."""
    for judge in judges:
        if judge_kind(judge) not in benchmark.judged_by:
            raise UserError(
                f"{benchmark.name} does not accept the judge '{judge}': rules read its answers",
                expected=f"--judge {' or '.join(benchmark.judged_by)}",
            )


def with_deciding_rules(
    benchmark: Benchmark, judges: Sequence[str], options: Mapping[str, Any]
) -> tuple[str, ...]:
    """Put the rules before judges none of which can decide whether an answer is correct."""
    able = "rules" in judges or any(can_decide(benchmark, judge, "correct", options) for judge in judges)
    return tuple(judges) if able else ("rules", *judges)


def can_decide(benchmark: Benchmark, judge: str, question: str, options: Mapping[str, Any]) -> bool:
    """Whether a judge of this kind can decide a question of a benchmark."""
    kind = judge_kind(judge)
    if kind == "human":
        return True
    scorers = benchmark.scorers(options)
    if kind == "rules":
        return question in by_question(scorers, RuleScorer)
    return question in by_question(scorers, ModelScorer)


def _verdict(case: Case, reading: Reading, scorer: str, judge: str, kind: JudgeKind) -> Verdict:
    return Verdict(
        targets=case.targets,
        question=case.question,
        scorer=scorer,
        judge=judge,
        kind=kind,
        verdict=reading.verdict,
        raw=reading.raw,
        extracted=reading.extracted,
        variant=case.variant,
        scores=reading.scores,
    )
