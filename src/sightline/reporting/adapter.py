"""The effect of an adapter like Table 6 of MM-R3, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.released import papers, published
from sightline.metrics.significance import Comparison
from sightline.reporting.comparison import NOTE, TOGETHER, comparison_notes, each_pair, value_at
from sightline.reporting.table import Column, Field, ReportTable, Value, build_table, n_cell, value_cell
from sightline.types import MetricValue, split_subset

SHOWN = ("acc", "s_gt", "con", "s_c", "agree", "con_by_response", "s_c_by_response", "agree_by_response")
"""The metrics of Table 6, the share of equal answers, and their rows under varying labels."""

PRINTED = {
    "BLIP-2": ("BLIP-2 (Ori.)", "BLIP-2 + adapter"),
    "LLaVa 1.5M": ("LLaVa 1.5M (Ori.)", "LLaVa 1.5M + adapter"),
}
"""The models of the paper with their rows without and with its adapter."""


COST_NOTES = (
    "MB: the saved weights of the adapter, without the memory of a forward pass or of training. LoRA is"
    " merged into the weights of the model and needs no memory at inference",
    "ms an answer: the model time of a batch divided by its size, as a mean over the stored answers. The runs"
    " without and with took place at different times: other load and the batch size influence the ratio",
)


class Cost(Struct, frozen=True):
    """The bytes of the own weights of an adapter; seconds per answer without and with it, None if unknown."""

    folder: str
    kind: str
    trained_on: str
    parameters: int
    model: int
    memory: int
    before: float | None
    after: float | None


_AdapterRow = tuple[Comparison, MetricValue]
"""A comparison of runs without and with an adapter, and a difference of it."""


def adapted_table(
    comparisons: Sequence[Comparison], metrics: Sequence[str], by: str | None, notes: Sequence[str] = ()
) -> ReportTable:
    """A table of metrics without and with an adapter; the values of the label `by` are rows too."""
    lines = [
        (comparison, change)
        for comparison in comparisons
        for metric in metrics
        for change in comparison.differences
        if change.metric == metric and (change.subset == "all" or split_subset(change.subset)[0] == by)
    ]
    fields: list[Field[_AdapterRow]] = [
        (Column("text", "", "task"), lambda line: line[0].task),
        (Column("text", "metric", "metric"), lambda line: line[1].metric),
        (Column("text", "subset", "subset"), lambda line: line[1].subset),
        (Column("value", "without\n95 %", "without"), lambda line: value_at(line[0].base, line[1])),
        (Column("value", "with adapter\n95 %", "with"), lambda line: value_at(line[0].other, line[1])),
        (Column("value", "difference\n95 %", "difference"), lambda line: value_cell(line[1])),
        (Column("count", "groups", "groups"), lambda line: n_cell(line[1])),
    ]
    notes = [*notes, NOTE.replace("the second run minus the first", "with minus without")]
    if any(_printed(line, rows) for line in lines for rows in PRINTED.values()):
        fields += [_paper(model, rows) for model, rows in PRINTED.items()]
        notes.append("in the paper: Table 6 of Chou et al. 2024, other models on other data")
    together = max(len(comparison.runs) for comparison in comparisons)
    if together > 1:
        fields.append((Column("text", "of each", "each"), lambda line: each_pair(*line)))
        notes.append(TOGETHER.format(f"{together} adapters"))
    return build_table("with and without the adapter", fields, lines, notes)


VOTED = ("acc", "s_gt")
"""The metrics that a vote leaves open: con, s_c and agree are 100 by construction."""


def voted_tables(comparisons: Sequence[Comparison], by: str | None) -> list[ReportTable]:
    """The table of a consistent answer that needs no training: the most frequent one of each group."""
    made = adapted_table(comparisons, VOTED, by)
    kept = [place for place, column in enumerate(made.columns) if column.key in _VOTED_COLUMNS]
    notes = (
        "voted: each answer is the most frequent one of its group, of equally frequent ones the first; con,"
        " s_c and agree are then 100, whatever the answers are",
        NOTE.replace("the second run minus the first", "voted minus without"),
    )
    table = ReportTable(
        "majority vote over the variants, without the adapter",
        tuple(replace(made.columns[place], head=_VOTED_COLUMNS[made.columns[place].key]) for place in kept),
        tuple(tuple(row[place] for place in kept) for row in made.rows),
        notes,
    )
    return [table] if table.rows else []


_VOTED_COLUMNS = {
    "task": "",
    "metric": "metric",
    "subset": "subset",
    "without": "without\n95 %",
    "with": "voted\n95 %",
    "difference": "difference\n95 %",
    "groups": "groups",
}


def run_notes(compared: Sequence[AdapterComparison]) -> list[str]:
    """Say which runs are compared, what they do not share, and what is left out."""
    notes = []
    for runs, comparison, refused, groups, _ in compared:
        pairs = ", ".join(f"{adapted} with and {without} without" for without, adapted in runs.runs)
        notes.append(f"{runs.task}: runs {pairs}")
        if runs.unmatched:
            newer = ", ".join(map(str, runs.unmatched))
            notes.append(
                f"{runs.task}: newer, but without a comparable run without the adapter, so not used: {newer}"
            )
        if refused:
            notes.append(
                f"{runs.task}: {refused:,} requests in {groups:,} groups are left out on both sides: their"
                " image is a training image of the adapter, which refused them"
            )
        notes += [f"{runs.task}: {note}" for note in comparison_notes(comparison)]
    return notes


def cost_table(costs: Sequence[Cost]) -> ReportTable:
    fields: list[Field[Cost]] = [
        (Column("text", "adapter", "adapter"), lambda cost: cost.folder),
        (Column("text", "kind, loss", "kind"), lambda cost: cost.kind),
        (Column("text", "trained on", "trained on"), lambda cost: cost.trained_on),
        (Column("count", "parameters", "parameters"), lambda cost: cost.parameters),
        (
            Column("value", "of the model's\n%", "share"),
            lambda cost: Value(100 * cost.parameters / cost.model),
        ),
        (Column("value", "MB", "MB"), lambda cost: _number(cost.memory / 1e6)),
        (Column("value", "ms an answer\nwithout", "ms without"), lambda cost: _number(cost.before, 1000)),
        (Column("value", "\nwith", "ms with"), lambda cost: _number(cost.after, 1000)),
        (Column("value", "\nratio", "ratio"), lambda cost: _number(_ratio(cost))),
    ]
    return build_table("what it costs", fields, costs, COST_NOTES)


def _paper(model: str, rows: tuple[str, str]) -> Field[_AdapterRow]:
    return Column("text", f"{model}\nin the paper", model), lambda line: _printed(line, rows)


def _printed(line: _AdapterRow, rows: tuple[str, str]) -> str:
    """The paper's figures without and with its adapter; '' if it has none."""
    comparison, change = line
    benchmark, _, setting = comparison.task.partition(":")
    if benchmark not in papers() or change.subset != "all":
        return ""
    figures = [published(benchmark, setting, row).get((change.metric, change.subset)) for row in rows]
    return " → ".join(f"{each[0].value:.1f}" for each in figures if each) if all(figures) else ""


def _number(value: float | None, scale: float = 1) -> Value:
    return Value(None if value is None else scale * value, unit="number")


def _ratio(cost: Cost) -> float | None:
    return cost.after / cost.before if cost.before and cost.after else None


# -- The records of a comparison of runs with and without adapters


class AdapterRuns(NamedTuple):
    """Pairs of runs of a task, such as "mmr3:restyling".

    `runs` holds the numbers of a run without and of a run with each adapter. `unmatched` are runs with an
    adapter that are newer than those in `runs`, and that have no comparable run without it.
    """

    task: str
    runs: Sequence[tuple[int, int]]
    unmatched: Sequence[int] = ()


class AdapterComparison(NamedTuple):
    """The comparison of pairs of runs, and what it leaves out on both sides.

    `refused` counts the requests that a run with an adapter refused because of a training image, and
    `groups` the groups of these requests. `voted` compares the runs without the adapter with the majority
    vote over the answers of each group.
    """

    runs: AdapterRuns
    comparison: Comparison
    refused: int
    groups: int
    voted: Comparison
