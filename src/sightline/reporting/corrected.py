"""The table of metrics of a judge, corrected by humans who labelled a sample of the clusters."""

from __future__ import annotations

from sightline.counts import counted
from sightline.metric_types import CorrectedValue, Result
from sightline.reporting.notes import null_notes, undecided_note
from sightline.reporting.report_table import Cell, Column, Field, ReportTable, Value, build_table, value_cell
from sightline.reporting.varied_options import short_names

CORRECTED = (
    "corrected: the humans' value plus what the judge knows of the other clusters (prediction-powered"
    " inference, PPI++). It holds if the labelled clusters are a random sample"
)
SAMPLED = "on labelled: the judge's value of the clusters that humans labelled, as the humans' value"
BIAS = "bias: the judge's value minus the humans', on the labelled clusters"
WEIGHT = "weight: how much the judge counts, from 0 (the humans alone) to 1; lambda of PPI++"
NARROWED = "narrowed: by how much the corrected interval is narrower than that of the humans alone"
NEEDED = (
    "to halve: how many more clusters humans have to label for a corrected interval of half the width; '-' if"
    " labels of all clusters would not be enough"
)


def corrected_tables(result: Result) -> list[ReportTable]:
    """The corrected metrics of a result.

    Returns:
        One table; none without a judge that read all answers and humans who labelled a part of them.
    """
    values = result.corrected
    if not values:
        return []
    judges = short_names(value.judge for value in values)
    fields: list[Field[CorrectedValue]] = [
        (Column("text", "metric", "metric"), lambda one: one.metric),
        *([(Column("text", "judge", "judge"), lambda one: judges[one.judge])] if len(judges) > 1 else []),
        (Column("value", "judge\n95 %", "judged"), lambda one: value_cell(one.judged)),
        (Column("value", "on labelled\n95 %", "sampled"), _sampled),
        (Column("value", "humans\n95 %", "human"), lambda one: value_cell(one.human)),
        (Column("value", "corrected\n95 %", "corrected"), lambda one: value_cell(one.corrected)),
        (Column("value", "bias\n95 %", "bias"), lambda one: value_cell(one.bias)),
        (Column("value", "weight", "weight"), lambda one: Value(one.weight, unit="number")),
        (Column("value", "narrowed\n%", "narrowed"), _narrowed),
        (Column("count", "labelled", "labelled"), lambda one: one.labelled),
        (Column("count", "clusters", "clusters"), lambda one: one.judged.clusters),
        (Column("count", "to halve", "needed"), lambda one: "-" if one.needed is None else one.needed),
    ]
    return [build_table("Corrected by humans", fields, values, _notes(result))]


def _sampled(value: CorrectedValue) -> Cell:
    return Value(None) if value.sampled is None else value_cell(value.sampled)


def _narrowed(value: CorrectedValue) -> Cell:
    return Value(value.narrowed)


def _notes(result: Result) -> list[str]:
    values = result.corrected
    read = ", ".join(dict.fromkeys(value.judge for value in values))
    humans = ", ".join(dict.fromkeys(value.humans for value in values))
    partly = max(value.partly for value in values)
    left_out = [f"{counted(partly, 'cluster')} with some labels only: left out"] if partly else []
    return [
        f"{read} read all clusters, {humans} a part of them",
        SAMPLED,
        CORRECTED,
        BIAS,
        WEIGHT,
        NARROWED,
        NEEDED,
        *left_out,
        *undecided_note(result, {value.metric for value in values}),
        *null_notes(part for value in values for part in (value.human, value.corrected, value.bias)),
    ]
