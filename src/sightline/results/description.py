"""The description of an evaluation, which results report and the store keeps for each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.plan.spec import Decide
from sightline.results.earlier_options import complete_benchmark_options, complete_options


class EvaluationDescription(Struct, frozen=True, kw_only=True):
    """What a result reports about its evaluation besides counts and metrics.

    `benchmark_options` are the effective options of the benchmark, `options` those and all others.
    `data_digest` is the digest of the samples, `ids_digest` that of their ids; `planned_samples` is their
    number. Two fields have other names in JSON, those of earlier versions, so that stored runs stay readable.
    """

    benchmark: str
    setting: str
    model: str
    identity: str
    judges: tuple[str, ...]
    decide: Decide
    judge_repeats: int = 1
    benchmark_options: Mapping[str, Any] = field(name="chosen")
    options: Mapping[str, Any]
    data_digest: str
    planned_samples: int = field(name="planned")
    against: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    ids_digest: str = ""


def stored_description(record: Mapping[str, Any]) -> EvaluationDescription:
    """Read the description that the store keeps of a run, of this version or an earlier one."""
    task = record["benchmark"], record["setting"]
    current: dict[str, Any] = {
        "chosen": complete_benchmark_options(*task, record["chosen"]),
        "options": complete_options(*task, record["options"]),
    }
    if not isinstance(against := record.get("against") or (), list | tuple):
        current["against"] = (against,)  # earlier versions: one row
    else:
        current["against"] = tuple(against)
    return msgspec.convert({**record, **current}, EvaluationDescription)


def judge_names(description: EvaluationDescription) -> str:
    """Name the judges of an evaluation, as `judge` in metrics.json does."""
    names = ", ".join(description.judges)
    return f"{names} (decides: {description.decide})" if len(description.judges) > 1 else names
