"""From rows and answers to judged groups: the decided view that metrics, files and reports read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.engine.runner import Keyed
from sightline.judging.judges import Judge, Results, decided
from sightline.plan.spec import Decide
from sightline.plan.stored_probe import StoredProbe
from sightline.types import Answer, Case, Failure, Group, Metric, Outcome, Usage, Verdict

NOT_ASKED = "not asked"
"""The error of a probe that nothing is known of."""

CHUNK = 256
"""Rows whose answers are fetched together."""


class Known(Protocol):
    """Where answers are looked up: the store, or a file that was read."""

    def known(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """What is known of these keys."""


class Judged(NamedTuple):
    """A group with its decided verdicts, and every single verdict that was given on it."""

    group: Group
    verdicts: list[Verdict]


def unjudged(rows: Iterable[StoredProbe], answers: Known) -> Iterator[Group]:
    """The groups of a run in its order: the rows of a sample and draw (pooled: and variant), answered."""
    for chunk in _whole_samples(rows):
        partners = [row for first in chunk for rows in first.partners.values() for row in rows]
        results = answers.known(list(dict.fromkeys(row.key for row in (*chunk, *partners))))
        for _, members in groupby(chunk, key=_group_of):
            yield _group(list(members), results)


def judge_requests(
    groups: Iterable[Group], benchmark: Benchmark, judges: Sequence[Judge], graded: Collection[str]
) -> Iterator[Keyed]:
    """Everything that the judges need to ask. `graded` are the partner settings judged like the group."""
    for group in groups:
        for case in _all_cases(group, benchmark, graded):
            for judge in judges:
                keyed = judge.request(case)
                if keyed is not None:
                    yield keyed


def second_chances(
    groups: Iterable[Group],
    benchmark: Benchmark,
    judges: Sequence[Judge],
    graded: Collection[str],
    answers: Known,
    draw: int,
) -> Iterator[Keyed]:
    """What the judges need to ask once more, as this draw: where their replies until then hold no verdict."""
    for group in groups:
        cases = list(_all_cases(group, benchmark, graded))
        replies = _replies(cases, judges, answers)
        for case in cases:
            for judge in judges:
                keyed = judge.request(case, draw)
                if keyed and any(v.verdict == "undecided" for v in judge.decide(case, replies)):
                    yield keyed


def judged(
    groups: Iterable[Group],
    benchmark: Benchmark,
    judges: Sequence[Judge],
    how: Decide,
    answers: Known,
    graded: Collection[str],
) -> Iterator[Judged]:
    """Each group with the verdicts of all judges and the ones that count."""
    for group in groups:
        replies = _replies(_all_cases(group, benchmark, graded), judges, answers)
        partners = dict(group.partners)
        for name, partner in _partner_groups(group, graded):
            partners[name] = _judge(partner, _single(partner, benchmark), judges, how, replies).group.outcomes
        whole = replace(group, partners=partners)
        yield _judge(whole, list(_judgeable(whole, benchmark)), judges, how, replies)


def graded_partners(metrics: Iterable[Metric]) -> set[str]:
    """The partner settings whose answers some metric wants judged, not only compared."""
    return {metric.needs for metric in metrics if metric.needs and metric.judged == "correct"}


def _group_of(row: StoredProbe) -> tuple[str, int | str]:
    return row.sample, row.variant if row.pooled else row.draw


def _replies(cases: Iterable[Case], judges: Sequence[Judge], answers: Known) -> Results:
    """What the judges replied about these cases, in every draw."""
    asked = [keyed.request.key for case in cases for judge in judges for keyed in _chances(judge, case)]
    return answers.known(asked) if asked else {}


def _chances(judge: Judge, case: Case) -> Iterator[Keyed]:
    """What a judge may ask about a case: its first draw, then its further chances."""
    for draw in count():
        keyed = judge.request(case, draw)
        if keyed is None:
            return
        yield keyed


def _all_cases(group: Group, benchmark: Benchmark, graded: Collection[str]) -> Iterator[Case]:
    yield from _judgeable(group, benchmark)
    for _, partner in _partner_groups(group, graded):
        yield from _single(partner, benchmark)


def _partner_groups(group: Group, graded: Collection[str]) -> Iterator[tuple[str, Group]]:
    for name, outcomes in group.partners.items():
        if name in graded:
            yield name, replace(group, outcomes=outcomes, partners={})


def _single(group: Group, benchmark: Benchmark) -> list[Case]:
    """The cases about one answer each."""
    return [case for case in _judgeable(group, benchmark) if len(case.targets) == 1]


def _judge(
    group: Group, cases: Sequence[Case], judges: Sequence[Judge], how: Decide, replies: Results
) -> Judged:
    keys = {outcome.key for outcome in group}
    every = [verdict for verdict in group.judgements if keys.issuperset(verdict.targets)]
    outcomes = list(group.outcomes)
    judgements = list(group.judgements)
    for case in cases:
        by_judge = [judge.decide(case, replies) for judge in judges]
        every += [verdict for verdicts in by_judge for verdict in verdicts]
        if case.question != "correct" and not any(by_judge):
            continue
        verdict = decided(case, by_judge, how)
        # Two probes may be one request (CODIS without context): a verdict goes by place, not by key.
        if case.place is not None and case.question == "correct":
            outcomes[case.place] = _with_verdict(outcomes[case.place], verdict)
        else:
            judgements.append(verdict)
    return Judged(replace(group, outcomes=tuple(outcomes), judgements=tuple(judgements)), every)


def _judgeable(group: Group, benchmark: Benchmark) -> Iterator[Case]:
    """The cases all of whose answers are there; the rest is decided by being absent.

    An empty answer is wrong without a judge, but it can be compared with another.
    """
    outcomes = [*group, *(outcome for partners in group.partners.values() for outcome in partners)]
    answered = {outcome.key for outcome in outcomes if outcome.answered}
    said = {outcome.key for outcome in outcomes if outcome.status == "ok"}
    for case in benchmark.cases(group):
        if set(case.targets) <= (said if len(case.targets) == 1 else answered):
            yield case


def _with_verdict(outcome: Outcome, verdict: Verdict) -> Outcome:
    return replace(
        outcome,
        verdict=verdict.verdict,
        extracted=verdict.extracted,
        judge=verdict.judge,
        scores={**outcome.scores, **verdict.scores},
    )


def _group(rows: Sequence[StoredProbe], results: Results) -> Group:
    first = rows[0]
    partners = {
        setting: tuple(_outcome(row, results.get(row.key)) for row in others)
        for setting, others in first.partners.items()
        if others and all(row.key in results for row in others)
    }
    outcomes = tuple(_outcome(row, results.get(row.key)) for row in rows)
    evidence = {row.key: row.evidence for row in rows if row.evidence}
    return Group(first.sample, first.draw, first.cluster, outcomes, partners=partners, evidence=evidence)


def _outcome(row: StoredProbe, result: Answer | Failure | None) -> Outcome:
    """A probe with what came of it, before anybody judged it: empty is wrong, failed is an error."""
    shared: dict[str, Any] = {
        "sample": row.sample,
        "variant": row.variant,
        "draw": row.draw,
        "group": row.sample,
        "key": row.key,
        "labels": row.labels,
        "references": row.references,
        "question": row.question,
        "options": row.options,
        "cluster": row.cluster,
    }
    if not isinstance(result, Answer):
        why = result.message if isinstance(result, Failure) else row.error or NOT_ASKED
        return Outcome(
            **shared,
            response="",
            status="error",
            finish_reason="",
            usage=Usage(),
            verdict="error",
            error=why,
        )
    empty = not result.text
    return Outcome(
        **shared,
        response=result.text,
        status="empty" if empty else "ok",
        finish_reason=result.finish_reason,
        usage=result.usage,
        verdict="wrong" if empty and row.references else "unscored",
        version=result.version,
    )


def _whole_samples(rows: Iterable[StoredProbe]) -> Iterator[list[StoredProbe]]:
    """Rows in chunks that never split a sample."""
    chunk: list[StoredProbe] = []
    for row in rows:
        if len(chunk) >= CHUNK and row.sample != chunk[-1].sample:
            yield chunk
            chunk = []
        chunk.append(row)
    if chunk:
        yield chunk
