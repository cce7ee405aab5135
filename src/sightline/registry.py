"""Names to things: 'module:name' strings, so that nothing is imported until it is used.

Other packages join by the entry points `sightline.benchmarks`, `sightline.models` and
`sightline.perturbations`, a file by `--plugin FILE`, which defines `benchmarks`, `models` and
`perturbations`, or one of them, as mappings of names to classes.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.errors import UserError, unknown_name

if TYPE_CHECKING:
    from sightline.benchmarks.base import Benchmark, Facts
    from sightline.builders.perturb import Perturbation

BENCHMARKS = {
    "codis": "sightline.benchmarks.codis.benchmark:Codis",
    "iibench": "sightline.benchmarks.iibench.benchmark:IIBench",
    "contextual": "sightline.benchmarks.contextual.benchmark:Contextual",
    "mmr3": "sightline.benchmarks.mmr3.benchmark:mmr3",
    "groups": "sightline.benchmarks.groups.benchmark:groups",
}

# Prefix of a model's name, up to a "/", or all of it -> a function of (rest of the name, whole name,
# ModelOptions) -> models.
MODELS = {
    "openai/": "sightline.models.resolve:openai",
    "http://": "sightline.models.resolve:endpoint",
    "https://": "sightline.models.resolve:endpoint",
    "vllm/": "sightline.models.resolve:vllm",
    "sglang/": "sightline.models.resolve:sglang",
    "hf/": "sightline.models.resolve:hf",
    "mini": "sightline.models.resolve:mini",
    "replay/": "sightline.models.resolve:replay",
    "baseline/": "sightline.models.resolve:baseline",
    "inspect/": "sightline.models.inspect:inspect",
}

PERTURBATIONS = {
    "blur": "sightline.builders.perturb:Blur",
    "crop": "sightline.builders.perturb:Crop",
    "jpeg": "sightline.builders.perturb:Jpeg",
    "rotate": "sightline.builders.perturb:Rotate",
}

MEMBERS = (
    "name", "title", "citation", "splits", "settings", "options", "judged_by", "presets",
    "samples", "probes", "cases", "scorer", "metrics", "partner", "shown_in",
)  # fmt: skip
"""What a benchmark must have (`benchmarks.base.Benchmark`)."""

_plugged: dict[str, dict[str, Any]] = {"benchmarks": {}, "models": {}, "perturbations": {}}


def benchmark(name: str) -> Benchmark:
    """The benchmark of that name. Raises UserError, with the nearest name, where there is none."""
    named: Benchmark = _find("benchmarks", name, BENCHMARKS)()
    lacking = [member for member in MEMBERS if not hasattr(named, member)]
    if lacking or named.name != name:
        raise UserError(
            f"the benchmark registered as '{name}' "
            + (f"lacks {', '.join(lacking)}" if lacking else f"calls itself '{named.name}'"),
            expected="every member that docs/adding-a-benchmark.md lists, and one name",
        )
    return named


def facts(name: str) -> Facts:
    """What reports know of that benchmark; empty where it says none, or is not known here."""
    from sightline.benchmarks.base import Facts

    if name not in BENCHMARKS and name not in benchmark_names():
        return Facts()
    found: Facts = getattr(_find("benchmarks", name, BENCHMARKS)(), "facts", Facts())
    return found


def benchmark_names() -> list[str]:
    """The names of all benchmarks that are installed or plugged in."""
    return _names("benchmarks", BENCHMARKS)


def model_factory(spec: str) -> tuple[str, Callable[..., Any]]:
    """The longest prefix that a model's name begins with, and what makes models of that kind.

    A registered name without a closing "/" is no prefix: it must be the whole name.
    """
    names = _names("models", MODELS)
    fitting = [name for name in names if spec == name or (name.endswith("/") and spec.startswith(name))]
    if fitting:
        longest = max(fitting, key=len)
        return longest, _find("models", longest, MODELS)
    known = [f"{name}..." if name.endswith("/") else name for name in names]
    raise unknown_name("model", spec, [*known, "baseline/chance"])


def perturbation(name: str) -> Perturbation:
    """The perturbation of that name. Raises UserError, with the nearest name, where there is none."""
    named: Perturbation = _find("perturbations", name, PERTURBATIONS)()
    lacking = [member for member in ("name", "variants", "apply") if not hasattr(named, member)]
    if lacking or named.name != name:
        raise UserError(
            f"the perturbation registered as '{name}' "
            + (f"lacks {', '.join(lacking)}" if lacking else f"calls itself '{named.name}'"),
            expected="a class with name, variants and apply, and one name",
        )
    return named


def perturbation_names() -> list[str]:
    """The names of all perturbations that are installed or plugged in."""
    return _names("perturbations", PERTURBATIONS)


def plug_in(file: str) -> None:
    """Load a Python file whose mappings `benchmarks`, `models`, `perturbations` join the registry."""
    path = Path(file)
    spec = importlib.util.spec_from_file_location(f"sightline_plugin_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError("cannot be loaded", file=file, expected="a Python file")
    module = importlib.util.module_from_spec(spec)
    # Classes look their annotations up in their module, which must be found by name for that.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"fails when it is loaded: {error!r}", file=file) from error
    if not any(hasattr(module, kind) for kind in _plugged):
        raise UserError(f"defines none of {', '.join(_plugged)}", file=file, expected="a mapping of names")
    for kind, things in _plugged.items():
        things.update(getattr(module, kind, {}))


def _find(kind: str, name: str, built_in: Mapping[str, str]) -> Any:
    if name in _plugged[kind]:
        return _plugged[kind][name]
    if name in built_in:
        module, _, attribute = built_in[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    for entry in _entry_points(kind):
        if entry.name == name:
            return entry.load()
    raise unknown_name(kind.removesuffix("s"), name, _names(kind, built_in))


def _names(kind: str, built_in: Mapping[str, str]) -> list[str]:
    return sorted({*built_in, *_plugged[kind], *(entry.name for entry in _entry_points(kind))})


def _entry_points(kind: str) -> Any:
    from importlib.metadata import entry_points

    return entry_points(group=f"sightline.{kind}")
