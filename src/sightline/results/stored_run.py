"""What the store keeps of each run: enough to judge and count its answers again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.engine.store import Store
from sightline.images import ImageLimits
from sightline.results.description import EvaluationDescription, stored_description


class StoredJudge(Struct, frozen=True):
    """A judge model of a stored run: its identity, its sampling options and its limits of images."""

    identity: str
    sampling: Mapping[str, Any]
    limits: ImageLimits = field(default_factory=ImageLimits)


class StoredRun(Struct, frozen=True, kw_only=True):
    """A run in the store.

    Attributes:
        number: The number of the run.
        description: What its result reports about it.
        is_finished: Whether it ended; a run can end at a budget (`stopped`).
        judges: The judge models by name.
        embedder: The identity of the embedder; None if there is none.
        text_metrics: The identity of each text metric by name.
        stopped: Why requests stopped before the end, such as `budget`; None if they did not.
    """

    number: int
    description: EvaluationDescription
    is_finished: bool
    judges: Mapping[str, StoredJudge] = field(default_factory=dict)
    embedder: str | None = None
    text_metrics: Mapping[str, str] = field(default_factory=dict)
    stopped: str | None = None

    @property
    def task(self) -> str:
        """Benchmark and setting, such as `codis:default`."""
        return f"{self.description.benchmark}:{self.description.setting}"


def read_stored_run(store: Store, number: int | None = None) -> StoredRun:
    """Read a run from the store.

    Args:
        store: The store.
        number: The number of the run; None takes the latest that finished.

    Returns:
        The run.

    Raises:
        UserError: There is no such run.
    """
    found, body, is_finished = store.run(number)
    return decode_run(found, body, is_finished=is_finished)


def decode_run(number: int, body: Mapping[str, Any], *, is_finished: bool) -> StoredRun:
    """Decode what the store keeps of a run, in this version's form or an earlier one.

    Args:
        number: The number of the run.
        body: What the store keeps of it.
        is_finished: Whether it ended.

    Returns:
        The run.
    """
    return StoredRun(
        number=number,
        description=stored_description(body["description"]),
        is_finished=is_finished,
        judges=msgspec.convert(body.get("judges") or {}, dict[str, StoredJudge]),
        embedder=body.get("embedder"),
        text_metrics=body.get("texts") or {},
        stopped=(body.get("counts") or {}).get("stopped"),
    )
