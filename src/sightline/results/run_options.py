"""The effective options of a run under flat names, and those in which runs differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from sightline.metric_types import Result
from sightline.registry import benchmark_class

NESTED = {"sampling": "gen", "model_arg": "model-arg"}
"""The options that hold further options, and the prefix of a name that exists twice."""


def flat_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Put sampling options and arguments of the model beside all others.

    >>> flat_options({"seed": 0, "sampling": {"temperature": 0, "seed": 1}, "model_arg": {"adapter": "a"}})
    {'seed': 0, 'temperature': 0, 'gen seed': 1, 'adapter': 'a'}
    """
    flat = {name: value for name, value in options.items() if name not in NESTED}
    for nested, prefix in NESTED.items():
        for name, value in (options.get(nested) or {}).items():
            flat[f"{prefix} {name}" if name in flat else name] = value
    return flat


def effective_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run as commands print them: flat, with a value, in the order of their names.

    >>> effective_options({"seed": 0, "limit": None, "sampling": {"temperature": 0}, "cot": True})
    {'cot': True, 'seed': 0, 'temperature': 0}
    """
    flat = flat_options(options)
    return {name: flat[name] for name in sorted(flat) if flat[name] is not None}


def different_options(
    base: Sequence[Result], other: Sequence[Result]
) -> Mapping[str, tuple[Sequence[Any], Sequence[Any]]]:
    """Find what differs between two sides besides model and setting: judge, options, versions."""
    different = _differences([_comparable(one) for one in base], [_comparable(one) for one in other])
    if {one.model for one in base} == {one.model for one in other}:
        identities = (
            [{"identity of the model": one.model_identity} for one in side] for side in (base, other)
        )
        different |= _differences(*identities)
    return different


def _differences(
    base: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Sequence[Any], Sequence[Any]]]:
    names = dict.fromkeys(name for values in (*base, *other) for name in values)
    different: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
    for name in names:
        first, second = ({_exact(one.get(name)): one.get(name) for one in side} for side in (base, other))
        if first.keys() != second.keys():
            different[name] = (list(first.values()), list(second.values()))
    return different


def _comparable(result: Result) -> dict[str, Any]:
    versions = {name: value for name, value in result.versions.items() if name != "reported"}
    declared = benchmark_class(result.benchmark).options
    internal = {name for name, option in declared.items() if option.internal}
    options = {name: value for name, value in result.options.items() if name not in internal}
    return {
        "judge": result.judge,
        **flat_options(options),
        **{f"version of {name}": value for name, value in versions.items()},
    }


def _exact(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
