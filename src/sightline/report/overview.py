"""Several settings at a glance: a row a metric, a column a model, and few notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sightline.report.notes import chance_notes, definition_notes, interval_notes, told
from sightline.report.report_table import Column, Field, ReportTable, n_cell, table, value_cell
from sightline.report.varied_options import short_names
from sightline.types import MetricValue, Result


def overview(title: str, results: Sequence[Result]) -> ReportTable:
    """All metrics over all samples, those of a setting under its name, the models beside each other.

    For results of the same models under each setting. Counts and options are left to each run's own report.
    """
    short = short_names(result.model for result in results)
    fields: list[Field[_Line]] = [
        (Column("text", "", "setting"), lambda line: line.setting),
        (Column("text", "metric", "metric"), lambda line: line.metric),
        *(_model_field(model, name) for model, name in short.items()),
        (Column("count", "n", "n"), lambda line: n_cell(next(iter(line.values.values())))),
    ]
    return table(title, fields, _lines(results), _notes(results))


class _Line(Struct, frozen=True):
    """A row in the making: a metric of a setting, and its value for each model."""

    setting: str
    metric: str
    values: Mapping[str, MetricValue]


def _lines(results: Sequence[Result]) -> list[_Line]:
    values: dict[tuple[str, str], dict[str, MetricValue]] = {}
    for result in results:
        for metric in result.metrics:
            if metric.subset == "all":
                values.setdefault((_setting(result), metric.metric), {})[result.model] = metric
    return [_Line(setting, metric, by_model) for (setting, metric), by_model in values.items()]


def _model_field(model: str, name: str) -> Field[_Line]:
    return Column("value", f"{name}\n95 %", model), lambda line: value_cell(line.values.get(model))


def _notes(results: Sequence[Result]) -> list[str]:
    """What chance gets of each benchmark, how the intervals were made, what each run says of itself."""
    chance: dict[str, list[str]] = {}
    for result in results:
        chance.setdefault(result.benchmark, []).extend(chance_notes(result))
    own = [(f"{_setting(result)}, {result.model}", result.notes) for result in results]
    intervals = interval_notes([metric for result in results for metric in result.metrics])
    definitions = {name: one for result in results for name, one in result.metric_definitions.items()}
    legend = definition_notes((metric.metric for result in results for metric in result.metrics), definitions)
    return [*legend, *told(own), *told(list(chance.items())), *intervals]


def _setting(result: Result) -> str:
    return f"{result.benchmark}:{result.setting}"
