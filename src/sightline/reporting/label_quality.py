"""The tables of rating quality: the estimated accuracy of each rater, and the answers to adjudicate first."""

from __future__ import annotations

from sightline.judging.judge_results import RatedAnswer, RaterAccuracy, RatingQuality
from sightline.reporting.notes import interval_notes, null_notes
from sightline.reporting.report_table import (
    Column,
    Field,
    ReportTable,
    Value,
    build_table,
    clusters_cell,
    n_cell,
    value_cell,
)

MOST_ANSWERS = 10
"""The answers to adjudicate that are listed."""

LEAST_LOSS = 5.0
"""Answers whose label is wrong with a smaller probability (in percent) are not listed."""

MODEL = (
    "estimated by the model of Dawid and Skene (1979): raters err independently of each other, each with"
    " rates of their own. The intervals take the estimated labels as known"
)
RATES = "accepts right, refuses wrong: how often the rater is right about right and about wrong answers"
LOSS = "loss: the probability that the label that counts is wrong (the majority, for a tie the likely label)"


def rating_tables(quality: RatingQuality | str) -> list[ReportTable]:
    """The accuracy of raters, and the answers to adjudicate first.

    Args:
        quality: The quality, or the reason why there is none.

    Returns:
        Two tables; one if no label is in doubt, none without a quality.
    """
    if isinstance(quality, str):
        return []
    doubtful = [one for one in quality.answers if one.loss >= LEAST_LOSS]
    return [_raters(quality), *([_adjudicate(quality, doubtful)] if doubtful else [])]


def _raters(quality: RatingQuality) -> ReportTable:
    fields: list[Field[RaterAccuracy]] = [
        (Column("text", "human", "human"), lambda one: one.rater),
        (Column("value", "accuracy\n95 %", "accuracy"), lambda one: value_cell(one.accuracy)),
        (Column("value", "accepts\nright", "accepts right"), lambda one: Value(one.right)),
        (Column("value", "refuses\nwrong", "refuses wrong"), lambda one: Value(one.wrong)),
        (Column("count", "answers", "n"), lambda one: n_cell(one.accuracy)),
        (Column("count", "clusters", "clusters"), lambda one: clusters_cell(one.accuracy)),
    ]
    values = [one.accuracy for one in quality.raters]
    notes = [MODEL, RATES, *null_notes(values), *interval_notes(values)]
    return build_table("Estimated accuracy of the humans", fields, quality.raters, notes)


def _adjudicate(quality: RatingQuality, doubtful: list[RatedAnswer]) -> ReportTable:
    fields: list[Field[RatedAnswer]] = [
        (Column("text", "sample", "sample"), lambda one: one.sample),
        (Column("text", "variant", "variant"), lambda one: one.variant),
        (Column("text", "responder", "responder"), lambda one: ", ".join(one.responders)),
        (Column("text", "accepted by", "accepted by"), lambda one: f"{one.right} of {one.raters}"),
        (Column("value", "right\n%", "probability"), lambda one: Value(one.probability)),
        (Column("value", "loss\n%", "loss"), lambda one: Value(one.loss)),
    ]
    wrong = sum(one.loss for one in quality.answers) / 100
    notes = [
        LOSS,
        f"of {len(quality.answers):,} labels, {wrong:.1f} are expected to be wrong; {len(doubtful):,} have a"
        f" loss of at least {LEAST_LOSS:g} %",
    ]
    return build_table("Answers to adjudicate first", fields, doubtful[:MOST_ANSWERS], notes)
