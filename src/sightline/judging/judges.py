"""The judges of an evaluation: rules, models, people; what each is asked, and which verdict counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.engine.keys import canonical, key_of
from sightline.engine.runner import Keyed
from sightline.errors import UserError
from sightline.formats.verdicts import read_verdicts
from sightline.images import ImageLimits, transform_for
from sightline.scoring.scorer import ModelScorer, Reading, RuleScorer
from sightline.types import Answer, Case, Failure, ImageFile, Request, Verdict

AnswersByKey = Mapping[str, Answer | Failure]
"""What is known by key."""

BLIND = "the image that the judge is to be shown cannot be read"
"""Why a judge who sees cannot decide."""


class Judge(Protocol):
    """One judge."""

    name: str

    def request(self, case: Case, draw: int = 0) -> Keyed | None:
        """What must be asked of a model before this judge can decide; None for nothing.

        Draw 1 is asked where the reply to draw 0 holds no verdict, and so on.
        """

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """Its verdicts on a case: none where it has no opinion, several where it is several people."""


class RulesJudge:
    """The benchmark's own rules."""

    name = "rules"

    def __init__(self, benchmark: Benchmark, options: Mapping[str, Any]) -> None:
        self._benchmark = benchmark
        self._options = options

    def request(self, case: Case, draw: int = 0) -> Keyed | None:
        """RulesJudge ask nobody."""
        return None

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """The verdict of the rules, where the benchmark has any for this question."""
        scorer = self._benchmark.scorer(case.question, "rules", self._options)
        if not isinstance(scorer, RuleScorer):
            return []
        return [_verdict(case, scorer.decide(case), scorer.name, self.name, "rules")]


class ModelJudge:
    """A model that is asked with the benchmark's judge prompts; `limits` are those of the images it takes.

    An answer without a reference cannot be held against one: of it, nothing is asked.
    """

    def __init__(
        self,
        name: str,
        identity: str,
        benchmark: Benchmark,
        options: Mapping[str, Any],
        sampling: Mapping[str, Any],
        limits: ImageLimits | None = None,
    ) -> None:
        self.name = name
        self._limits = limits or ImageLimits()
        self._identity = identity
        self._benchmark = benchmark
        self._options = options
        self._sampling = sampling

    def request(self, case: Case, draw: int = 0) -> Keyed | None:
        """The judge prompt, filled in; remembered like any request."""
        scorer = self._scorer(case)
        if scorer is None or draw >= scorer.chances or (scorer.sees and not case.images):
            return None
        messages = scorer.ask(case)
        images = {file.path: self._as_shown(file) for file in case.images if scorer.sees}
        body = canonical(self._identity, messages, images, self._sampling, draw)
        return Keyed(Request(key_of(body), messages, self._sampling, images, draw), body)

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """What the model replied: undecided where no reply holds a verdict, error where it gave none."""
        scorer = self._scorer(case)
        if scorer is None:
            return []
        for draw in range(scorer.chances):
            keyed = self.request(case, draw)
            reply = replies.get(keyed.request.key) if keyed is not None else Failure("permanent", BLIND)
            if isinstance(reply, Answer):
                reading, version = scorer.read(reply.text), reply.version
            elif draw == 0:
                reading, version = Reading("error", reply.message if reply is not None else "not asked"), ""
            else:
                break
            verdict = _verdict(case, reading, scorer.name, self.name, "model", draw=draw, version=version)
            if reading.verdict != "undecided":
                break
        return [verdict]

    def _scorer(self, case: Case) -> ModelScorer | None:
        """The scorer of a case that this judge can be asked about."""
        if case.question == "correct" and not case.references:
            return None
        scorer = self._benchmark.scorer(case.question, "model", self._options)
        return scorer if isinstance(scorer, ModelScorer) else None

    def _as_shown(self, file: ImageFile) -> ImageFile:
        return replace(file, transform=transform_for(file, self._limits))


class HumanJudge:
    """Verdicts of people, from a verdicts.jsonl."""

    def __init__(self, name: str, verdicts: Sequence[Verdict]) -> None:
        self.name = name
        self.verdicts = verdicts
        self.matched = 0
        self._by_case: dict[tuple[str, tuple[str, ...]], list[Verdict]] = defaultdict(list)
        for verdict in verdicts:
            self._by_case[verdict.question, verdict.targets].append(verdict)

    @classmethod
    def from_file(cls, file: str) -> HumanJudge:
        """The people whose verdicts a file holds."""
        return cls(f"human:{file}", read_verdicts(Path(file)))

    def request(self, case: Case, draw: int = 0) -> Keyed | None:
        """People were asked before."""
        return None

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """Everybody's verdict on this case; two answers may have been compared in either order."""
        given = self._by_case.get((case.question, case.targets)) or self._by_case.get(
            (case.question, case.targets[::-1]), []
        )
        fitting = [verdict for verdict in given if verdict.variant in ("", case.variant)]
        self.matched += len(fitting)
        return [replace(verdict, variant=case.variant) for verdict in fitting]


def check_judge_kinds(benchmark: Benchmark, judges: Sequence[str]) -> None:
    """Raise UserError for a kind of judge that the benchmark does not take."""
    for judge in judges:
        kind = judge_kind(judge)
        if kind not in benchmark.judged_by:
            raise UserError(
                f"{benchmark.name} is not judged by '{judge}': its answers are read by rules",
                expected=f"--judge {' or '.join(benchmark.judged_by)}",
            )


def with_deciding_rules(
    benchmark: Benchmark, judges: Sequence[str], options: Mapping[str, Any]
) -> tuple[str, ...]:
    """The judges, behind the rules where none of them can say which answers are right."""
    kinds = [judge_kind(judge) for judge in judges]
    able = any(kind == "human" or benchmark.scorer("correct", kind, options) for kind in kinds)
    return tuple(judges) if able else ("rules", *judges)


def judge_kind(judge: str) -> str:
    """`rules`, `people` or `model`."""
    return "rules" if judge == "rules" else "human" if judge.startswith("human:") else "model"


def _verdict(
    case: Case,
    reading: Reading,
    scorer: str,
    judge: str,
    kind: Any,
    *,
    draw: int = 0,
    version: str = "",
) -> Verdict:
    return Verdict(
        targets=case.targets,
        question=case.question,
        scorer=scorer,
        judge=judge,
        kind=kind,
        draw=draw,
        verdict=reading.verdict,
        raw=reading.raw,
        extracted=reading.extracted,
        variant=case.variant,
        version=version,
        scores=reading.scores,
    )
