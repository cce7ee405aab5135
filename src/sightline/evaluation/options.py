"""The effective options of an evaluation (defaults, the setting's, the user's), and its description."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import FILE, Benchmark, BenchmarkOption, Setting, defaults
from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.errors import UserError, did_you_mean, unknown_name
from sightline.evaluation.spec import Decide, Spec
from sightline.images import ImageLimits
from sightline.models.base import check_request_limits, refuse_protocol_fields
from sightline.scoring.reasoning import check_names

_RANGES = {
    "temperature": (0.0, sys.float_info.max),
    "top_p": (0.0, 1.0),
    "max_tokens": (1.0, sys.float_info.max),
}
"""Sampling options that every server supports, and the bounds of their values."""


class EffectiveOptions(Struct, frozen=True):
    """The effective options of the benchmark, and the sampling options that are sent."""

    benchmark: Mapping[str, Any]
    sampling: Mapping[str, Any]


def setting_of(benchmark: Benchmark, task: str) -> Setting:
    name = task.partition(":")[2] or next(iter(benchmark.settings))
    setting = benchmark.settings.get(name)
    if setting is None and FILE in benchmark.settings:
        any_file = benchmark.settings[FILE]
        return replace(any_file, name=name, options={**any_file.options, "file": name})
    if setting is None:
        raise unknown_name(f"setting of {benchmark.name}", name, benchmark.settings)
    return setting


def variant_of(benchmark: Benchmark, setting: Setting) -> str:
    """The variant of an answer whose file names none."""
    named = benchmark.options.get("variant")
    return str(setting.options.get("variant", named.default if named else setting.name))


def effective(benchmark: Benchmark, setting: Setting, spec: Spec) -> EffectiveOptions:
    """Combine and check the options; None removes a sampling option from the request."""
    _check_counts(spec)
    options = defaults(benchmark, setting)
    for name, value in spec.set.items():
        check_option(benchmark.options, name, value, benchmark.name)
        options[name] = value
    options["seed"] = spec.seed
    preset: Mapping[str, Any] = {}
    if spec.preset is not None:
        if spec.preset not in benchmark.presets:
            raise unknown_name(f"--preset of {benchmark.name}", spec.preset, benchmark.presets)
        preset = benchmark.presets[spec.preset]
    sampling = {**setting.sampling, **preset, **spec.gen}
    refuse_protocol_fields((*spec.gen, *spec.judge_gen))
    _check_sampling(sampling)
    return EffectiveOptions(options, {name: value for name, value in sampling.items() if value is not None})


def check_option(options: Mapping[str, BenchmarkOption], name: str, value: Any, owner: str) -> None:
    if name not in options:
        having = [other for other in benchmark_names() if name in benchmark_class(other).options]
        if having:
            names = ", ".join(sorted(options)) or "none"
            raise UserError(
                f"unknown option of {owner} '{name}': it is an option of {' and '.join(having)}",
                expected=f"one of {names}",
            )
        raise unknown_name(f"option of {owner}", name, options)
    option = options[name]
    if not option.allows(value):
        texts = [choice for choice in option.choices or () if isinstance(choice, str)]
        near = did_you_mean(str(value), texts)
        raise UserError(f"--set {name}={value} is not allowed{near}", expected=option.allowed)


def split_of(benchmark: Benchmark, spec: Spec) -> str:
    split = spec.split or benchmark.splits[0]
    if split not in benchmark.splits:
        raise unknown_name(f"split of {benchmark.name}", split, benchmark.splits)
    return split


def _check_sampling(sampling: Mapping[str, Any]) -> None:
    """Raise UserError for a value that no server accepts; names that are not in _RANGES pass."""
    for name, (least, most) in _RANGES.items():
        value = sampling.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and least <= value <= most):
            expected = f"a number from {least:g}" + (f" to {most:g}" if most <= 1 else "")
            raise UserError(f"--gen {name}={value} is out of range", expected=expected)


def reasoning_names(spec: Spec) -> tuple[str, ...]:
    """The tags of --reasoning-tags."""
    return tuple(name.strip() for names in spec.reasoning_tags for name in names.split(","))


def recorded_tags(description: EvaluationDescription) -> tuple[str, ...]:
    """The tags of --reasoning-tags with which an evaluation was made."""
    return tuple(description.options.get("reasoning_tags", ()))


def _check_counts(spec: Spec) -> None:
    check_request_limits(spec.concurrency, spec.max_requests, spec.max_cost)
    check_names(reasoning_names(spec))
    counts = {
        "--repeats": spec.repeats,
        "--limit": spec.limit,
        "--judge-repeats": spec.judge_repeats,
        "--retry-truncated": spec.retry_truncated,
    }
    for name, value in counts.items():
        if value is not None and value < 1:
            raise UserError(f"{name} {value} is too small", expected="at least 1")
    if spec.seed < 0:
        raise UserError(f"--seed {spec.seed} is negative", expected="0 or more")
    if spec.shuffle and spec.limit is None:
        raise UserError("--shuffle has no effect without --limit", expected="--limit N with --shuffle")


# -- The description of an evaluation, which results report and the store keeps for each run


class JudgeModel(Struct, frozen=True):
    """A model that judges: its identity, its sampling options and its limits of images.

    The store keeps it for each run.
    """

    identity: str
    sampling: Mapping[str, Any]
    limits: ImageLimits = msgspec.field(default_factory=ImageLimits)


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
    notes: list[str] = msgspec.field(default_factory=list)
    ids_digest: str = ""


def judge_names(description: EvaluationDescription) -> str:
    """Name the judges of an evaluation, as `judge` in metrics.json does."""
    names = ", ".join(description.judges)
    return f"{names} (decides: {description.decide})" if len(description.judges) > 1 else names
