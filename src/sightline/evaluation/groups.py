"""Groups of answered probes, built from stored probes and a lookup of answers; nothing is judged yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from msgspec import Struct

from sightline.evaluation.plan import StoredProbe
from sightline.types import NOT_SENT, Answer, Failure, Group, GroupKey, Outcome, Usage

PROBES_PER_LOOKUP = 256
"""The number of probes whose answers are fetched together."""


class AnswerLookup(Protocol):
    """A source of answers by key: the store, or a file that was read."""

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """Absent keys are left out."""


class CollectedAnswers(Struct, frozen=True, kw_only=True):
    """The probes of an evaluation and the source of their answers.

    `probes` starts a new pass over the stored probes at each call, in the order of the samples.
    """

    probes: Callable[[], Iterable[StoredProbe]]
    answers: AnswerLookup

    def groups(self) -> Iterator[Group]:
        """The groups of the evaluation, in the order of the samples; each call starts a new pass."""
        return answered_groups(self.probes(), self.answers)


def answered_groups(probes: Iterable[StoredProbe], answers: AnswerLookup) -> Iterator[Group]:
    for chunk in _whole_samples(probes):
        partners = [probe for first in chunk for others in first.partners.values() for probe in others]
        results = answers.look_up(list(dict.fromkeys(probe.key for probe in (*chunk, *partners))))
        for _, members in groupby(chunk, key=_group_key):
            yield _group(list(members), results)


def _group_key(probe: StoredProbe) -> GroupKey:
    return (probe.sample, 0, probe.variant) if probe.pooled else (probe.sample, probe.draw, "")


def _group(probes: Sequence[StoredProbe], results: Mapping[str, Answer | Failure]) -> Group:
    first = probes[0]
    sample, draw, pooled = _group_key(first)
    partners = {
        setting: tuple(_outcome(probe, results.get(probe.key)) for probe in others)
        for setting, others in first.partners.items()
        if others and all(probe.key in results for probe in others)
    }
    outcomes = tuple(_outcome(probe, results.get(probe.key)) for probe in probes)
    evidence = {probe.key: probe.evidence for probe in probes if probe.evidence}
    return Group(sample, draw, first.cluster, outcomes, partners=partners, evidence=evidence, pooled=pooled)


def _outcome(probe: StoredProbe, result: Answer | Failure | None) -> Outcome:
    """A probe with its answer, before it is judged.

    An empty answer is wrong, a failed call is an error. A probe that has neither an answer nor a failure was
    not sent, unless it could not be.
    """
    shared: dict[str, Any] = {
        "sample": probe.sample,
        "variant": probe.variant,
        "draw": probe.draw,
        "key": probe.key,
        "labels": probe.labels,
        "references": probe.references,
        "question": probe.question,
        "options": probe.options,
        "context": probe.context,
        "images": probe.images,
        "prompt": probe.prompt,
        "cluster": probe.cluster,
        "sample_digest": probe.sample_digest,
    }
    if not isinstance(result, Answer):
        error = result.message if isinstance(result, Failure) else probe.error
        return Outcome(
            **shared,
            response="",
            status="error" if error else "not_sent",
            finish_reason="",
            usage=Usage(),
            verdict="error" if error else "unscored",
            error=error or NOT_SENT,
        )
    empty = not result.text
    return Outcome(
        **shared,
        response=result.text,
        status="empty" if empty else "ok",
        finish_reason=result.finish_reason,
        usage=result.usage,
        verdict="wrong" if empty and probe.references else "unscored",
        version=result.version,
    )


def _whole_samples(probes: Iterable[StoredProbe]) -> Iterator[list[StoredProbe]]:
    """Probes in chunks that never split a sample."""
    chunk: list[StoredProbe] = []
    for probe in probes:
        if len(chunk) >= PROBES_PER_LOOKUP and probe.sample != chunk[-1].sample:
            yield chunk
            chunk = []
        chunk.append(probe)
    if chunk:
        yield chunk
