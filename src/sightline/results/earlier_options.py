"""Options of results of earlier versions: the names of this version, and the defaults of newer options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sightline.benchmarks.base import Benchmark, defaults
from sightline.benchmarks.options import Setting
from sightline.errors import UserError
from sightline.plan.effective import setting_of
from sightline.plan.spec import Spec, recorded_options
from sightline.registry import benchmark as find_benchmark
from sightline.registry import is_benchmark

_EARLIER_OPTIONS = {
    "picture": "image",
    "judge_picture": "judge_image",
    "drawn": "synthetic",
    "own": "other_data",
}
"""The name of an option in earlier versions -> its name now."""


def known_setting(benchmark: str, setting: str) -> tuple[Benchmark, Setting] | None:
    """Find the benchmark and the setting that a result names.

    Returns:
        Both; None if this version does not have them: those of a plugin, or of an earlier version.
    """
    if not is_benchmark(benchmark):
        return None
    found = find_benchmark(benchmark)
    try:
        return found, setting_of(found, f"{benchmark}:{setting}")
    except UserError:
        return None


def default_options(benchmark: str, setting: str) -> dict[str, Any]:
    """The recorded options of a task for which the user sets none."""
    return {**recorded_options(Spec(task="")), **_benchmark_defaults(benchmark, setting)}


def complete_options(benchmark: str, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the options of a result.

    >>> complete_options("another", "default", {"picture": "none", "judge_repeats": 3})["image"]
    'none'
    """
    return {**default_options(benchmark, setting), **_renamed(options)}


def complete_benchmark_options(benchmark: str, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the options of the benchmark alone, as `complete_options` completes all."""
    return {**_benchmark_defaults(benchmark, setting), **_renamed(options)}


def _benchmark_defaults(benchmark: str, setting: str) -> dict[str, Any]:
    known = known_setting(benchmark, setting)
    return defaults(*known) if known else {}


def _renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    return {_EARLIER_OPTIONS.get(name, name): value for name, value in options.items()}
