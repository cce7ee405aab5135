"""A sweep as data: what sweep.json holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sightline.metric_types import Result


class PointRecord(Struct, frozen=True, kw_only=True):
    """A point in sweep.json. `folder` is the name of its results folder, `state` says how it ended.

    `values` are the values of the varied options, under the JSON name `at`.
    """

    name: str
    model: str
    values: Mapping[str, Any] = field(name="at")
    folder: str | None
    exit_status: int
    state: str
    result: Result | None


class SweepRecord(Struct, frozen=True):
    """The whole of sweep.json."""

    task: str
    exit_status: int
    points: list[PointRecord]
    schema: int = 1
