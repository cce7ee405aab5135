"""Results of several settings in one table: a row per metric, a column per model, few notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sightline.metric_types import MetricValue, Result
from sightline.reporting.notes import chance_notes, definition_notes, interval_notes, shared_notes
from sightline.reporting.report_table import (
    Column,
    Field,
    ReportTable,
    build_table,
    heading,
    n_cell,
    value_cell,
)
from sightline.reporting.varied_options import short_names


def overview(title: str, results: Sequence[Result]) -> ReportTable:
    """A table of all metrics over all samples, grouped by setting, with the models as columns.

    The results need the same models under each setting. Counts and options are in the report of each run.
    """
    short = short_names(result.model for result in results)
    fields: list[Field[_OverviewRow]] = [
        (Column("text", "", "setting"), lambda line: line.setting),
        (Column("text", "metric", "metric"), lambda line: line.metric),
        *(_model_field(model, name) for model, name in short.items()),
        (Column("count", "n", "n"), lambda line: n_cell(next(iter(line.values.values())))),
    ]
    return build_table(title, fields, _lines(results), _notes(results))


class _OverviewRow(Struct, frozen=True):
    """A row: a metric of a setting, and its value for each model."""

    setting: str
    metric: str
    values: Mapping[str, MetricValue]


def _lines(results: Sequence[Result]) -> list[_OverviewRow]:
    values: dict[tuple[str, str], dict[str, MetricValue]] = {}
    for result in results:
        for metric in result.metrics:
            if metric.subset == "all":
                values.setdefault((_setting(result), metric.metric), {})[result.model] = metric
    return [_OverviewRow(setting, metric, by_model) for (setting, metric), by_model in values.items()]


def _model_field(model: str, name: str) -> Field[_OverviewRow]:
    return Column("value", heading(name, "95 %"), model), lambda line: value_cell(line.values.get(model))


def _notes(results: Sequence[Result]) -> list[str]:
    """The legend, what chance gets, the notes of each run, and how the intervals were made."""
    chance: dict[str, list[str]] = {}
    for result in results:
        chance.setdefault(result.benchmark, []).extend(chance_notes(result))
    own = [(f"{_setting(result)}, {result.model}", result.notes) for result in results]
    intervals = interval_notes([metric for result in results for metric in result.metrics])
    definitions = {name: one for result in results for name, one in result.metric_definitions.items()}
    legend = definition_notes((metric.metric for result in results for metric in result.metrics), definitions)
    return [*legend, *shared_notes(own), *shared_notes(list(chance.items())), *intervals]


def _setting(result: Result) -> str:
    return f"{result.benchmark}:{result.setting}"
