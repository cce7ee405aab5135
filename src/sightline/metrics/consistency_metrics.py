"""The metrics of groups whose probes ask the same thing: accuracy and consistency (MM-R3 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sightline.metric_types import PERCENT, Metric, difference_range
from sightline.metrics.consistency import (
    UNCHANGED,
    acc,
    agree,
    by_response,
    complete,
    con,
    consistent_mixed,
    consistent_right,
    consistent_wrong,
    contrary_consistent,
    empty,
    failures,
    in_failures,
    inconsistent,
    minus_sampling,
    over_pairs,
    pairs_left_out,
    pairs_left_out_or_empty,
    refused,
    s_c,
    s_gt,
    same_meaning,
    without_empty,
)
from sightline.scoring.similarity import SIMILAR

COMPLETE = {name: f"{name}_complete" for name in ("con", "s_c", "agree")}
"""A metric over all pairs that are there -> the same metric over complete groups."""

BY_RESPONSE = "_by_response"
PAIR_METRICS = frozenset(
    [
        *COMPLETE,
        *COMPLETE.values(),
        "same_meaning",
        "contrary_consistent",
        "consistent_right",
        "consistent_wrong",
        "consistent_mixed",
        "inconsistent",
        "con_failures",
        "s_c_failures",
    ]
)
"""The metrics that average over pairs of answers.

Under a label that varies within a group (a style, a colour), a pair belongs to two values of the label. There
the metric `X_by_response` takes the place of `X`: the mean of each answer over its pairs, averaged over the
answers.
"""

NO_REFERENCE = "no answers with references to compare them with"
NO_REFERENCE_TEXT = f"{NO_REFERENCE}; or questions with options, which acc compares by option"
NO_EMBEDDER = "no similarities: embedder=none"
NO_PAIR = "no two answers of a group to compare: a group of one variant, or Sampling without --repeats"
NO_SIMILARITY = f"{NO_PAIR}; or questions with options, whose answers con compares by option"
NO_SCORED_PAIR = "no two answers of a group to compare that both have references"
NO_FAILURE = "no failure case: every answer is right, or none has a reference"
NO_FAILING_PAIR = (
    "no failure case with two answers to compare: every answer is right, or none has a reference"
)


def consistency_metrics(
    *,
    embedded: bool = True,
    ignore_empty: bool = False,
    sampling: bool = False,
    task_metrics: Sequence[Metric] = (),
) -> list[Metric]:
    """The metrics of consistency, acc first."""
    main = [ACC, S_GT, CON, S_C]
    differences = [_minus_sampling(metric) for metric in main]
    over_complete = [_complete(metric) for metric in (CON, S_C, AGREE)]
    every = [*main, *over_complete, *(differences if sampling else ()), AGREE, *_BESIDE, *task_metrics]
    if ignore_empty:
        every = [replace(metric, terms=without_empty(metric.terms)) for metric in every]
    every = [part for metric in every for part in _by_unit(metric)]
    left_out = pairs_left_out_or_empty if ignore_empty else pairs_left_out
    every += [replace(PAIRS_LEFT_OUT, terms=left_out), EMPTY]
    if embedded:
        return every
    return [replace(metric, absent=NO_EMBEDDER) if _is_similarity(metric) else metric for metric in every]


def _is_similarity(metric: Metric) -> bool:
    return metric.judged == SIMILAR or metric.name.startswith("s_gt")


def _by_unit(metric: Metric) -> list[Metric]:
    """A metric of pairs, and the one by response for labels that vary within a group; other metrics alone."""
    if metric.name not in PAIR_METRICS:
        return [metric]
    return [
        replace(metric, terms=over_pairs(metric.terms), labels="shared"),
        replace(
            metric,
            name=f"{metric.name}{BY_RESPONSE}",
            terms=by_response(metric.terms),
            meaning=f"{metric.name} of each answer with the others of its group, averaged over answers",
            source="beyond the paper; Tables 10-13 of MM-R3 use one pair per answer",
            labels="varying",
        ),
    ]


def _complete(metric: Metric) -> Metric:
    """The metric over the groups without a failed answer."""
    return replace(
        metric,
        name=COMPLETE[metric.name],
        terms=complete(metric.terms),
        meaning=f"{metric.name} over the groups whose answers all exist",
        source="beyond the paper",
        absent="no group whose answers all exist, with two answers to compare",
    )


def _minus_sampling(metric: Metric) -> Metric:
    """The metric as a difference to the unchanged input (MM-R3 4.2, Tables 2-4, in brackets)."""
    return replace(
        metric,
        name=f"{metric.name}_minus_sampling",
        terms=minus_sampling(metric.terms),
        meaning=f"{metric.name} minus {metric.name} of the unchanged input, sent repeatedly (Sampling)",
        range=difference_range(metric.range),
        source="MM-R3 4.2, Tables 2-4",
        unit="points",
        needs=UNCHANGED,
        how_to_run="--set unchanged=on --repeats 4",
    )


_MAIN = "MM-R3 3.3, Tables 2-5"
_FAILURE = "MM-R3 A.5 and A.8, Tables 7 and 10-13"
_COSINE = (-100.0, 100.0)

ACC = Metric(
    name="acc",
    terms=acc,
    meaning="answers that are right",
    better="higher",
    range=PERCENT,
    source=_MAIN,
    absent=NO_REFERENCE,
)
S_GT = Metric(
    name="s_gt",
    terms=s_gt,
    meaning="mean cosine similarity of an answer to its nearest reference, x 100",
    better="higher",
    range=_COSINE,
    graded=True,
    source=_MAIN,
    judged=None,
    absent=NO_REFERENCE_TEXT,
)
CON = Metric(
    name="con",
    terms=con,
    meaning="pairs of answers of a group with a cosine similarity above 0.7, or with the same option",
    better="higher",
    range=PERCENT,
    source=_MAIN,
    judged=SIMILAR,
    absent=NO_PAIR,
)
S_C = Metric(
    name="s_c",
    terms=s_c,
    meaning="mean cosine similarity of the pairs of answers in a group, x 100",
    better="higher",
    range=_COSINE,
    graded=True,
    source=_MAIN,
    judged=SIMILAR,
    absent=NO_SIMILARITY,
)
AGREE = Metric(
    name="agree",
    terms=agree,
    meaning="pairs of answers that are equal after normalisation, or choose the same option",
    better="higher",
    range=PERCENT,
    source="beyond the paper",
    judged=None,
    absent=NO_PAIR,
)
PAIRS_LEFT_OUT = Metric(
    name="pairs_left_out",
    terms=pairs_left_out,
    meaning="pairs that are not compared: an answer failed, or is left out as empty",
    better="lower",
    range=PERCENT,
    source="beyond the paper",
    judged=SIMILAR,
    absent=NO_PAIR,
    counts_failures=True,
)
EMPTY = Metric(
    name="empty",
    terms=empty,
    meaning="answers without text, or without any after post-processing",
    better="lower",
    range=PERCENT,
    source="beyond the paper",
    judged=None,
    absent="no answers",
)

_BESIDE = (
    Metric(
        name="same_meaning",
        terms=same_meaning,
        meaning="decided pairs of answers that are equal, or that a judge calls the same in meaning",
        better="higher",
        range=PERCENT,
        source="beyond the paper",
        judged="same_meaning",
        absent="no judge decided whether answers mean the same (--judge MODEL)",
    ),
    Metric(
        name="contrary_consistent",
        terms=contrary_consistent,
        meaning="consistent pairs that contradict each other, such as yes and no",
        better="lower",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent="no pair above the threshold",
    ),
    Metric(
        name="consistent_right",
        terms=consistent_right,
        meaning="pairs that are consistent and of which both answers are right",
        better="higher",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
    ),
    Metric(
        name="consistent_wrong",
        terms=consistent_wrong,
        meaning="pairs that are consistent and of which both answers are wrong",
        better="lower",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
    ),
    Metric(
        name="consistent_mixed",
        terms=consistent_mixed,
        meaning="pairs that are consistent and of which one answer is right, one wrong",
        better="neither",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
    ),
    Metric(
        name="inconsistent",
        terms=inconsistent,
        meaning="pairs that are not consistent",
        better="lower",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
    ),
    Metric(
        name="failures",
        terms=failures,
        meaning="groups in which at least one answer is not right",
        better="lower",
        range=PERCENT,
        source=_FAILURE,
        absent=NO_REFERENCE,
    ),
    Metric(
        name="s_gt_failures",
        terms=in_failures(s_gt),
        meaning="s_gt over the groups in which at least one answer is not right",
        better="higher",
        range=_COSINE,
        graded=True,
        source=_FAILURE,
        judged=None,
        absent=NO_FAILURE,
    ),
    Metric(
        name="con_failures",
        terms=in_failures(con),
        meaning="con over the groups in which at least one answer is not right",
        better="neither",
        range=PERCENT,
        source=_FAILURE,
        judged=SIMILAR,
        absent=NO_FAILING_PAIR,
    ),
    Metric(
        name="s_c_failures",
        terms=in_failures(s_c),
        meaning="s_c over the groups in which at least one answer is not right",
        better="neither",
        range=_COSINE,
        graded=True,
        source=_FAILURE,
        judged=SIMILAR,
        absent=NO_FAILING_PAIR,
    ),
    Metric(
        name="refused",
        terms=refused,
        meaning="answers that decline to answer",
        better="lower",
        range=PERCENT,
        source="beyond the paper; MM-R3 A.9.3",
        judged=None,
        absent="no answers",
    ),
)
