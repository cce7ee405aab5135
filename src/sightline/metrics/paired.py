"""Metrics of pairs: one image and one question under two contexts (CODIS 3.3 and 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sightline.types import Group, Metric, Outcome, Term

NO_REFERENCE = "no answers with references to compare them with"


def acc_p(pair: Group) -> Iterator[Term]:
    """1 for a pair with both answers right, of 1 (Table 3). Yields at most one term."""
    yield from _both_right(pair.outcomes)


def acc_q(pair: Group) -> Iterator[Term]:
    """The right answers, of the scored ones (Table 3). Yields at most one term."""
    scored = [outcome for outcome in pair if outcome.scored]
    if scored:
        yield Term(sum(outcome.right for outcome in scored), len(scored))


def acc_p_images(pair: Group) -> Iterator[Term]:
    """acc_p of the same pair with its image, next to that with its caption (Table 5)."""
    yield from _both_right(pair.partners.get("default", ()))


def context_awareness(pair: Group) -> Iterator[Term]:
    """1 for a pair whose outputs differ in meaning, of 1 where that is decided (4.2, Table 3)."""
    if len(pair) == 2 and (different := differ(pair, *pair.outcomes)) is not None:
        yield Term(different, 1)


def context_awareness_left_out(pair: Group) -> Iterator[Term]:
    """1 for a pair that context_awareness leaves out, of 1: a failed output, or an undecided judgement."""
    if len(pair) == 2:
        yield Term(differ(pair, *pair.outcomes) is None, 1)


def output_variability(pair: Group) -> Iterator[Term]:
    """1 for a query whose output changes in meaning without the context, of 1 (4.2, Table 4).

    Yields:
        At most one term per query.
    """
    for outcome, without in zip(pair, pair.partners.get("no-context", ()), strict=False):
        if (different := differ(pair, outcome, without)) is not None:
            yield Term(different, 1)


def output_variability_left_out(pair: Group) -> Iterator[Term]:
    """1 for a query that output_variability leaves out, of 1: an output failed or is undecided."""
    for outcome, without in zip(pair, pair.partners.get("no-context", ()), strict=False):
        yield Term(differ(pair, outcome, without) is None, 1)


def differ(group: Group, first: Outcome, second: Outcome) -> bool | None:
    """Whether two outputs differ in meaning.

    Equal answers need no judge. The order of the two answers in a judgement does not matter.

    Returns:
        True or False; None if one call failed or no judge decided.
    """
    if not (first.answered and second.answered):
        return None
    if first.key == second.key or first.response == second.response:
        return False
    verdict = group.judgement("same_meaning", first.key, second.key) or group.judgement(
        "same_meaning", second.key, first.key
    )
    return {"right": False, "wrong": True}.get(verdict.verdict) if verdict else None


def _both_right(pair: Sequence[Outcome]) -> Iterator[Term]:
    if len(pair) == 2 and all(outcome.scored for outcome in pair):
        yield Term(all(outcome.right for outcome in pair), 1)


ACC_P = Metric(
    name="acc_p",
    terms=acc_p,
    meaning="pairs of which both answers are right",
    better="higher",
    source="CODIS 3.3, Table 3",
    absent=NO_REFERENCE,
    per_group=True,
    reads="verdicts",
)
ACC_Q = Metric(
    name="acc_q",
    terms=acc_q,
    meaning="queries that are answered right",
    better="higher",
    source="CODIS 3.3, Table 3",
    absent=NO_REFERENCE,
    reads="verdicts",
)
ACC_P_IMAGES = Metric(
    name="acc_p_images",
    terms=acc_p_images,
    meaning="acc_p of the same pairs with the image instead of its caption",
    better="higher",
    source="CODIS 5.1, Table 5",
    needs="default",
    absent=NO_REFERENCE,
    per_group=True,
)
CONTEXT_AWARENESS = Metric(
    name="context_awareness",
    terms=context_awareness,
    meaning="pairs whose two outputs differ in meaning",
    better="higher",
    source="CODIS 4.2, Table 3",
    judged="same_meaning",
    absent="no judge decided whether the outputs of any pair differ in meaning",
)
CONTEXT_AWARENESS_LEFT_OUT = Metric(
    name="context_awareness_left_out",
    terms=context_awareness_left_out,
    meaning="pairs that context_awareness leaves out: failed or undecided",
    better="lower",
    source="beyond the paper",
    judged=None,
    absent="no pair of outputs",
    counts_failures=True,
)
OUTPUT_VARIABILITY = Metric(
    name="output_variability",
    terms=output_variability,
    meaning="queries whose output changes in meaning without the context",
    better="higher",
    source="CODIS 4.2, Table 4",
    needs="no-context",
    judged="same_meaning",
    absent="no judge decided whether any output differs in meaning without the context",
)
OUTPUT_VARIABILITY_LEFT_OUT = Metric(
    name="output_variability_left_out",
    terms=output_variability_left_out,
    meaning="queries that output_variability leaves out: failed or undecided",
    better="lower",
    source="beyond the paper",
    needs="no-context",
    judged=None,
    absent="no output has its counterpart without the context",
    counts_failures=True,
)
