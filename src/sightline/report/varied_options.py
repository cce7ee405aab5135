"""Several results told apart: the options in which they differ, and short names for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sightline.metric_types import Result
from sightline.registry import benchmark_class
from sightline.report.notes import compact


class ResultPoint(Struct, frozen=True):
    """A result, and the values of the options that vary between it and the other results."""

    result: Result
    values: Mapping[str, Any]


def result_points(results: Sequence[Result]) -> list[ResultPoint]:
    """The results with the options in which those of one model, setting and judge differ.

    An option that differs between models only was not varied; nor does one stand here that changes only
    together with another, as the repeats do between Sampling and All.
    """
    options = [_plain(result) for result in results]
    runs: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for result, plain in zip(results, options, strict=True):
        runs.setdefault((*task_of(result), result.model, result.judge), []).append(plain)
    names = dict.fromkeys(name for plain in options for name in plain)
    varied = [
        name
        for name in names
        if any(len({exact_text(plain.get(name)) for plain in run}) > 1 for run in runs.values())
    ]
    kept: list[str] = []
    for name in varied:
        if not any(_follows(name, other, options) for other in kept):
            kept.append(name)
    return [
        ResultPoint(result, {name: plain.get(name) for name in kept})
        for result, plain in zip(results, options, strict=True)
    ]


def task_of(result: Result) -> tuple[str, str]:
    """Benchmark and setting."""
    return result.benchmark, result.setting


def leading(points: Sequence[ResultPoint]) -> list[str]:
    """The metrics to show of results of one benchmark: its leading ones, else the first three."""
    carried = list(dict.fromkeys(metric.metric for point in points for metric in point.result.metrics))
    return [
        name for name in benchmark_class(points[0].result.benchmark).leading_metrics if name in carried
    ] or carried[:3]


def row_names(points: Sequence[ResultPoint]) -> list[str]:
    """A name for the row, or the line, of each: its short model, with the judge where judges differ.

    A second result with the same name and values gets a number.
    """
    short = short_names(point.result.model for point in points)
    several = len({point.result.judge for point in points}) > 1
    seen: list[tuple[str, str]] = []
    names = []
    for point in points:
        name = short[point.result.model] + (f", judge {point.result.judge}" if several else "")
        seen.append((name, exact_text([task_of(point.result), point.values])))
        again = seen.count(seen[-1])
        names.append(name if again == 1 else f"{name} ({again})")
    return names


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Each model's name without address and maker, where that still tells it from the others.

    >>> short_names(["http://localhost:8000/v1#llava", "openai/gpt-4o"])
    {'http://localhost:8000/v1#llava': 'llava', 'openai/gpt-4o': 'gpt-4o'}
    >>> short_names(["a/last", "b/last"])
    {'a/last': 'a/last', 'b/last': 'b/last'}
    """
    whole = list(dict.fromkeys(models))
    ends = [name.rpartition("#")[2].rstrip("/").rpartition("/")[2] or name for name in whole]
    return {name: end if ends.count(end) == 1 else name for name, end in zip(whole, ends, strict=True)}


def options_text(values: Mapping[str, Any]) -> str:
    """Varied options in words; '' where there are none.

    >>> options_text({"size": 224, "cot": True, "stop": None})
    'size=224, cot=on, stop=null'
    """
    return ", ".join(f"{name}={option_text(value)}" for name, value in values.items())


def option_text(value: Any) -> str:
    """A value of an option as it is written on the command line."""
    return ("off", "on")[value] if isinstance(value, bool) else compact(value)


def exact_text(value: Any) -> str:
    """A value as text that is equal only for equal values: 1, 1.0, true and '1' are four."""
    return msgspec.json.encode(value, order="deterministic").decode()


def _follows(name: str, other: str, options: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each value of `other` goes with one value of `name`."""
    together = {(exact_text(plain.get(other)), exact_text(plain.get(name))) for plain in options}
    return len(together) == len({value for value, _ in together})


def _plain(result: Result) -> dict[str, Any]:
    """All effective options under one name each; a sampling option that shares a name is 'gen NAME'."""
    options = {name: value for name, value in result.options.items() if name != "sampling"}
    sampling = result.options.get("sampling") or {}
    return options | {f"gen {name}" if name in options else name: v for name, v in sampling.items()}
