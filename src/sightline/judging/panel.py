"""The panel of judges: their requests to models, and groups with all verdicts and those that count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.engine.keys import KeyedRequest
from sightline.judging.groups import AnswerLookup
from sightline.judging.judges import HumanJudge, Judge
from sightline.judging.verdict_selection import select_verdict
from sightline.metric_types import Metric
from sightline.plan.spec import Decide
from sightline.types import (
    Answer,
    Case,
    Failure,
    Group,
    Outcome,
    Verdict,
)


class JudgedGroup(NamedTuple):
    """A group whose outcomes carry the verdict that counts, and every verdict of every judge on it."""

    group: Group
    verdicts: list[Verdict]


class JudgePanel(Struct, frozen=True, kw_only=True):
    """The judges of an evaluation, and the rule by which one verdict per case counts.

    `decide` is `first` (the first judge who decides) or `majority`. `judged_partners` names the partner
    settings whose answers are judged too (see the function of that name).
    """

    benchmark: Benchmark
    judges: Sequence[Judge]
    decide: Decide = "first"
    judged_partners: Collection[str] = ()

    def requests(self, groups: Iterable[Group]) -> Iterator[KeyedRequest]:
        """The first requests that the judges send to models."""
        for group in groups:
            for case in self._all_cases(group):
                for judge in self.judges:
                    for repeat in range(judge.repeats):
                        keyed = judge.request(case, repeat)
                        if keyed is not None:
                            yield keyed

    def retry_requests(
        self, groups: Iterable[Group], replies: AnswerLookup, attempt: int
    ) -> Iterator[KeyedRequest]:
        """The requests of another attempt, for the repeats whose replies so far hold no verdict."""
        for group in groups:
            cases = list(self._all_cases(group))
            by_key = self._replies(cases, replies)
            for case in cases:
                for judge in self.judges:
                    if judge.request(case, attempt=attempt) is None:
                        continue
                    for repeat, verdict in enumerate(judge.decide(case, by_key)):
                        keyed = judge.request(case, repeat, attempt)
                        if keyed and verdict.verdict == "undecided":
                            yield keyed

    def judge(self, groups: Iterable[Group], replies: AnswerLookup) -> Iterator[JudgedGroup]:
        for group in groups:
            by_key = self._replies(self._all_cases(group), replies)
            partners = dict(group.partners)
            for name, partner in self._partner_groups(group):
                judged = self._judge_cases(partner, self._single_cases(partner), by_key)
                partners[name] = judged.group.outcomes
            complete = replace(group, partners=partners)
            yield self._judge_cases(complete, list(self._answered_cases(complete)), by_key)

    def _replies(self, cases: Iterable[Case], replies: AnswerLookup) -> Mapping[str, Answer | Failure]:
        """The replies of the judges on these cases, in every repeat and attempt."""
        if not any(judge.max_attempts for judge in self.judges):
            return {}
        keys = [
            keyed.request.key for case in cases for judge in self.judges for keyed in _requests(judge, case)
        ]
        return replies.look_up(keys) if keys else {}

    def _all_cases(self, group: Group) -> Iterator[Case]:
        yield from self._answered_cases(group)
        for _, partner in self._partner_groups(group):
            yield from self._single_cases(partner)

    def _partner_groups(self, group: Group) -> Iterator[tuple[str, Group]]:
        for name, outcomes in group.partners.items():
            if name in self.judged_partners:
                yield name, replace(group, outcomes=outcomes, partners={})

    def _single_cases(self, group: Group) -> list[Case]:
        """The cases about one answer each."""
        return [case for case in self._answered_cases(group) if len(case.targets) == 1]

    def _answered_cases(self, group: Group) -> Iterator[Case]:
        """The cases whose answers all exist.

        An empty answer is wrong without a judge, but it can be compared with another answer.
        """
        outcomes = [*group, *(outcome for partners in group.partners.values() for outcome in partners)]
        answered = {outcome.key for outcome in outcomes if outcome.answered}
        with_text = {outcome.key for outcome in outcomes if outcome.status == "ok"}
        for case in self.benchmark.cases(group):
            if set(case.targets) <= (with_text if len(case.targets) == 1 else answered):
                yield case

    def _judge_cases(
        self, group: Group, cases: Sequence[Case], replies: Mapping[str, Answer | Failure]
    ) -> JudgedGroup:
        keys = {outcome.key for outcome in group}
        verdicts = [verdict for verdict in group.judgements if keys.issuperset(verdict.targets)]
        outcomes = list(group.outcomes)
        judgements = list(group.judgements)
        only_sample = all(isinstance(judge, HumanJudge) and judge.is_sample for judge in self.judges)
        for case in cases:
            by_judge = [judge.decide(case, replies) for judge in self.judges]
            verdicts += [verdict for opinions in by_judge for verdict in opinions]
            if case.question != "correct" and not any(by_judge):
                continue
            selected = select_verdict(case, by_judge, self.decide)
            if only_sample and not any(by_judge):
                # Nobody read the answer, by design: it is neither right nor wrong.
                selected = replace(selected, verdict="unscored")
            # Two probes may share one request (CODIS without context): use the position, not the key.
            if case.outcome_index is not None and case.question == "correct":
                outcomes[case.outcome_index] = _with_verdict(outcomes[case.outcome_index], selected)
            else:
                judgements.append(selected)
        return JudgedGroup(replace(group, outcomes=tuple(outcomes), judgements=tuple(judgements)), verdicts)


def judged_partners(metrics: Iterable[Metric]) -> set[str]:
    """The partner settings whose answers some metric needs judged, not only compared."""
    return {metric.needs for metric in metrics if metric.needs and metric.judged == "correct"}


def _requests(judge: Judge, case: Case) -> Iterator[KeyedRequest]:
    for repeat, attempt in product(range(judge.repeats), range(judge.max_attempts)):
        keyed = judge.request(case, repeat, attempt)
        if keyed is not None:
            yield keyed


def _with_verdict(outcome: Outcome, verdict: Verdict) -> Outcome:
    return replace(
        outcome,
        verdict=verdict.verdict,
        extracted=verdict.extracted,
        judge=verdict.judge,
        scores={**outcome.scores, **verdict.scores},
    )
