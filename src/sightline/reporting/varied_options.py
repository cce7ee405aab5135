"""The options that vary among several results, and short names for results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sightline.metric_types import Result
from sightline.results.run_options import flat_options


class ResultPoint(Struct, frozen=True):
    """A result and its values of the varied options."""

    result: Result
    values: Mapping[str, Any]


def result_points(results: Sequence[Result]) -> list[ResultPoint]:
    """Find the options that vary within results of one model, setting and judge.

    An option that differs between models only is not varied. An option that always changes together with
    another one, such as the repeats between Sampling and All, is left out.
    """
    options = [flat_options(result.options) for result in results]
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
    return result.benchmark, result.setting


def row_names(points: Sequence[ResultPoint]) -> list[str]:
    """Names for the rows of results: the short model name, with the judge if judges differ."""
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
    """Model names without server and organisation, where they stay distinct.

    >>> short_names(["http://localhost:8000/v1#llava", "openai/gpt-4o"])
    {'http://localhost:8000/v1#llava': 'llava', 'openai/gpt-4o': 'gpt-4o'}
    >>> short_names(["a/last", "b/last"])
    {'a/last': 'a/last', 'b/last': 'b/last'}
    """
    whole = list(dict.fromkeys(models))
    ends = [name.rpartition("#")[2].rstrip("/").rpartition("/")[2] or name for name in whole]
    return {name: end if ends.count(end) == 1 else name for name, end in zip(whole, ends, strict=True)}


def exact_text(value: Any) -> str:
    """A text that is equal for equal values only: 1, 1.0, true and '1' differ."""
    return msgspec.json.encode(value, order="deterministic").decode()


def _follows(name: str, other: str, options: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each value of `other` occurs with one value of `name` only."""
    together = {(exact_text(plain.get(other)), exact_text(plain.get(name))) for plain in options}
    return len(together) == len({value for value, _ in together})
