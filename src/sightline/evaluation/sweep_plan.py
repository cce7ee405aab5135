"""The points of a sweep: every combination of models and values of options, a folder and a name each."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError, unknown_name
from sightline.formats.digests import text_digest
from sightline.models.augmented import AUGMENTATIONS, CAPTIONED
from sightline.plan.spec import Spec
from sightline.reporting.option_texts import options_text
from sightline.reporting.varied_options import exact_text, short_names

LONGEST_NAME = 100
"""The maximum length of a folder's name; longer names are cut and end in a digest."""


class SweepPoint(Struct, frozen=True):
    """One combination of a sweep.

    `name` is a readable name ('llava, size=224'), `values` maps each varied option to its value here. `spec`
    is the evaluation; its `out` is the folder of the point.
    """

    name: str
    values: Mapping[str, Any]
    spec: Spec


class _Varied(Struct, frozen=True):
    """An option and its values. `kind` is the field of the spec that takes it: set, gen or augment."""

    kind: str
    name: str
    values: Sequence[Any]


def plan_sweep(
    base: Spec,
    models: Sequence[str],
    options: Mapping[str, Sequence[Any]],
    sampling: Mapping[str, Sequence[Any]],
    augments: Sequence[str] = (),
) -> list[SweepPoint]:
    """Combine every model with every combination of values; models change slowest."""
    _check_values("--model", models)
    if base.model_id is not None and len(models) > 1:
        raise UserError(
            "--model-id would give several models one identity",
            expected="one --model, or a model_id for each name in sightline.toml",
        )
    varied = [_Varied("set", name, values) for name, values in options.items()]
    varied += [_Varied("gen", name, values) for name, values in sampling.items()]
    for option in varied:
        _check_values(f"--{option.kind} {option.name}", option.values)
    if augments:
        _check_values("--augment", augments)
        varied.append(_Varied("augment", "augment", augments))
    short = short_names(models)
    points = []
    for model, *selected in product(models, *(option.values for option in varied)):
        fields: dict[str, dict[str, Any]] = {"set": {}, "gen": {}, "augment": {}}
        values: dict[str, Any] = {}
        for option, value in zip(varied, selected, strict=True):
            fields[option.kind][option.name] = value
            if len(option.values) > 1:
                shared = option.kind == "gen" and option.name in options
                values[f"gen {option.name}" if shared else option.name] = value
        name = ", ".join(filter(None, (short[model], options_text(values))))
        spec = dataclasses.replace(base, model=model, set=fields["set"], gen=fields["gen"])
        points.append(SweepPoint(name, values, _augmented(spec, augments, **fields["augment"])))
    return _with_names(points, base)


def _augmented(spec: Spec, augments: Sequence[str], augment: str | None = None) -> Spec:
    if augment is None:
        return spec
    if augment not in AUGMENTATIONS:
        raise unknown_name("--augment", augment, AUGMENTATIONS)
    if augment != CAPTIONED and CAPTIONED in augments:
        spec = dataclasses.replace(spec, captioner=None, captions=None)
    return dataclasses.replace(spec, augment=augment)


def _with_names(points: Sequence[SweepPoint], base: Spec) -> list[SweepPoint]:
    """The points with a folder each inside --out, and a name each that begins with --name."""
    return [
        replace(
            point,
            spec=dataclasses.replace(
                point.spec,
                out=None if base.out is None else str(Path(base.out) / short),
                name=None if base.name is None else f"{base.name}:{short}",
            ),
        )
        for point, short in zip(points, _distinct_names(points), strict=True)
    ]


def _distinct_names(points: Sequence[SweepPoint]) -> list[str]:
    """A name for each point that is distinct and safe on every file system."""
    names = [re.sub(r"[^\w.=+-]+", "-", point.name.replace(", ", "_"), flags=re.ASCII) for point in points]
    names = [name.lstrip(".-") for name in names]
    times = Counter(name.casefold() for name in names)
    return [
        name
        if name and times[name.casefold()] == 1 and len(name) <= LONGEST_NAME
        else f"{name[: LONGEST_NAME - 9]}-{_digest(point)}".lstrip("-")
        for name, point in zip(names, points, strict=True)
    ]


def _digest(point: SweepPoint) -> str:
    return text_digest(exact_text([point.spec.model, point.values]))[:8]


def _check_values(option: str, values: Sequence[Any]) -> None:
    if not values:
        raise UserError(f"{option} has no value", expected="at least one")
    for value, times in Counter(map(exact_text, values)).items():
        if times > 1:
            raise UserError(f"{option} has the value {value} twice", expected="each value once")
