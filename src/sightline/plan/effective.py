"""The effective options of an evaluation: defaults, then the setting's, then the user's."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import FILE, Benchmark, Option, Setting, defaults
from sightline.errors import UserError, did_you_mean, unknown_name
from sightline.models.sampling import refuse_protocol
from sightline.plan.spec import Spec

_RANGES = {
    "temperature": (0.0, sys.float_info.max),
    "top_p": (0.0, 1.0),
    "max_tokens": (1.0, sys.float_info.max),
}
"""Sampling options that every server knows, and the bounds of their values."""


class EffectiveOptions(Struct, frozen=True):
    """The effective options of an evaluation: benchmark options, and the sampling that is sent."""

    benchmark: Mapping[str, Any]
    sampling: Mapping[str, Any]


def setting_of(benchmark: Benchmark, task: str) -> Setting:
    """The setting that a task names after its colon (a file, where it takes any), else the first one."""
    name = task.partition(":")[2] or next(iter(benchmark.settings))
    setting = benchmark.settings.get(name)
    if setting is None and FILE in benchmark.settings:
        any_file = benchmark.settings[FILE]
        return replace(any_file, name=name, options={**any_file.options, "file": name})
    if setting is None:
        raise unknown_name(f"setting of {benchmark.name}", name, benchmark.settings)
    return setting


def variant_of(benchmark: Benchmark, setting: Setting) -> str:
    """The variant that an answer which names none is to: the one name of a setting's probes, where they have
    one (the option `variant`), else the setting's."""
    named = benchmark.options.get("variant")
    return str(setting.options.get("variant", named.default if named else setting.name))


def effective(benchmark: Benchmark, setting: Setting, spec: Spec) -> EffectiveOptions:
    """Defaults, then the setting's, then the user's; None leaves a sampling option out of the call.

    Raises UserError for an option or a value that does not exist, with the nearest name.
    """
    _check_counts(spec)
    options = defaults(benchmark, setting)
    for name, value in spec.set.items():
        check_option(benchmark.options, name, value, benchmark.name)
        options[name] = value
    options["seed"] = spec.seed
    preset: Mapping[str, Any] = {}
    if spec.preset is not None:
        if spec.preset not in benchmark.presets:
            raise unknown_name(f"--gen preset of {benchmark.name}", spec.preset, benchmark.presets)
        preset = benchmark.presets[spec.preset]
    wanted = {**setting.sampling, **preset, **spec.gen}
    refuse_protocol((*spec.gen, *spec.judge_gen))
    _check_sampling(wanted)
    return EffectiveOptions(options, {name: value for name, value in wanted.items() if value is not None})


def check_option(options: Mapping[str, Option], name: str, value: Any, whose: str) -> None:
    """Raise UserError for a `--set` key that does not exist, or a value that its option does not allow."""
    if name not in options:
        raise unknown_name(f"option of {whose}", name, options)
    option = options[name]
    if not option.allows(value):
        texts = [choice for choice in option.choices or () if isinstance(choice, str)]
        near = did_you_mean(str(value), texts)
        raise UserError(f"--set {name}={value} is not allowed{near}", expected=option.allowed)


def _check_sampling(wanted: Mapping[str, Any]) -> None:
    """Raise UserError for a value that no server can take; names that are not known here pass."""
    for name, (least, most) in _RANGES.items():
        value = wanted.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and least <= value <= most):
            expected = f"a number from {least:g}" + (f" to {most:g}" if most <= 1 else "")
            raise UserError(f"--gen {name}={value} is no {name}", expected=expected)


def _check_counts(spec: Spec) -> None:
    counts = {"--repeats": spec.repeats, "--concurrency": spec.concurrency, "--limit": spec.limit}
    for name, value in counts.items():
        if value is not None and value < 1:
            raise UserError(f"{name} {value} is no count", expected="at least 1")
    least = {"--seed": spec.seed, "--max-requests": spec.max_requests, "--max-cost": spec.max_cost}
    for name, number in least.items():
        if number is not None and number < 0:
            raise UserError(f"{name} {number} is negative", expected="0 or more")
    if spec.shuffle and spec.limit is None:
        raise UserError("--shuffle draws the groups that --limit takes", expected="--limit N beside it")


def split_of(benchmark: Benchmark, spec: Spec) -> str:
    """The split that is evaluated: the user's, else the benchmark's first."""
    split = spec.split or benchmark.splits[0]
    if split not in benchmark.splits:
        raise unknown_name(f"split of {benchmark.name}", split, benchmark.splits)
    return split
