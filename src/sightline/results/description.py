"""The description of an evaluation, which results report and the store keeps for each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sightline.plan.spec import Decide


class EvaluationDescription(Struct, frozen=True, kw_only=True):
    """What a result reports about its evaluation besides counts and metrics.

    `benchmark_options` are the effective options of the benchmark, `options` those and all others.
    `data_digest` is the digest of the samples, `ids_digest` that of their ids; `planned_samples` is their
    number.
    """

    benchmark: str
    setting: str
    model: str
    identity: str
    judges: tuple[str, ...]
    decide: Decide
    judge_repeats: int = 1
    benchmark_options: Mapping[str, Any]
    options: Mapping[str, Any]
    data_digest: str
    planned_samples: int
    against: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    ids_digest: str = ""


def judge_names(description: EvaluationDescription) -> str:
    """Name the judges of an evaluation, as `judge` in metrics.json does."""
    names = ", ".join(description.judges)
    return f"{names} (decides: {description.decide})" if len(description.judges) > 1 else names
