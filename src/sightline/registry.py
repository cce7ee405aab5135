"""Registered names: 'module:name' strings, so that a module is imported only when its entry is used.

Other packages register through the entry points `sightline.benchmarks`, `sightline.models` and
`sightline.perturbations`. A file registers through `--plugin FILE`: it defines one or more of the mappings
`benchmarks`, `models` and `perturbations`, each from names to classes (for models: to factory functions).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from sightline.errors import UserError, did_you_mean, unknown_name
from sightline.plugins import add_package, load_plugin

if TYPE_CHECKING:
    from sightline.benchmarks.base import Benchmark
    from sightline.builders.perturbations import Perturbation, TextPerturbation
    from sightline.engine.store import Store
    from sightline.formats.export import ExportFormat
    from sightline.types import Verdict

BENCHMARKS = {
    "codis": "sightline.benchmarks.codis.benchmark:Codis",
    "iibench": "sightline.benchmarks.iibench.benchmark:IIBench",
    "contextual": "sightline.benchmarks.contextual.benchmark:Contextual",
    "mmr3": "sightline.benchmarks.mmr3.benchmark:MMR3",
    "groups": "sightline.benchmarks.groups.benchmark:Groups",
}

# A prefix of model names that ends in "/" or an address scheme, or a whole name
# -> a function of (rest of the name, whole name, ModelOptions) that returns models.
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

ADAPTER_LOADER = "sightline.adapter.loading:load_adapter"
"""What loads the adapter of `--model-arg adapter=FOLDER`: a function of the folder's path."""

PROJECT_VERDICTS = "sightline.annotation.project_verdicts:project_verdicts"
"""What reads the verdicts of `--judge human:PROJECT`: a function of the store and the project's name."""

PERTURBATIONS = {
    "blur": "sightline.builders.perturbations:Blur",
    "crop": "sightline.builders.perturbations:Crop",
    "jpeg": "sightline.builders.perturbations:Jpeg",
    "rotate": "sightline.builders.perturbations:Rotate",
}

EXPORT_FORMATS = {
    "jsonl": "sightline.formats.export:JSONL",
}
"""The export formats that hold answers to any benchmark; the others belong to a benchmark."""

_EXPECTED = {
    "benchmarks": '{"NAME": CLASS}, a class that derives from sightline.benchmarks.base.Benchmark',
    "models": '{"NAME": FUNCTION}, a function of (rest, spec, options) that returns a list of models',
    "perturbations": '{"NAME": CLASS}, a class like those of sightline.builders.perturbations',
}
"""What a plugin may define."""

_from_plugins: dict[str, dict[str, Any]] = {"benchmarks": {}, "models": {}, "perturbations": {}}


def benchmark(name: str) -> Benchmark:
    from sightline.benchmarks.base import Benchmark
    from sightline.contract import check_contract

    entry = _find("benchmarks", name, BENCHMARKS)
    check_contract("benchmark", name, entry, Benchmark)
    made: Benchmark = entry()
    return made


def benchmark_class(name: str) -> type[Benchmark]:
    """Look up what a benchmark declares, for readers of results whose benchmark may not be installed."""
    from sightline.benchmarks.base import Benchmark

    return type(benchmark(name)) if is_benchmark(name) else Benchmark


def is_benchmark(name: str) -> bool:
    """Tell whether a benchmark is installed or plugged in."""
    return name in BENCHMARKS or name in benchmark_names()


def benchmark_names() -> list[str]:
    """List the benchmarks that are installed or plugged in."""
    return _names("benchmarks", BENCHMARKS)


def export_formats() -> dict[str, ExportFormat]:
    """List the export formats: those of each benchmark, then those for any benchmark."""
    formats: dict[str, ExportFormat] = {}
    for name in benchmark_names():
        formats |= benchmark_class(name).export_formats
    return formats | {name: _load(entry) for name, entry in EXPORT_FORMATS.items()}


def model_factory(spec: str) -> tuple[str, Callable[..., Any]]:
    """Find the factory for a model.

    A registered name that does not end in "/" is not a prefix: the whole name of the model must equal it.
    For an address, what other packages register is not searched, because that takes longer than the rest.
    """
    is_address = spec.startswith(("http://", "https://"))
    names = [*MODELS, *_from_plugins["models"]] if is_address else _names("models", MODELS)
    fitting = [name for name in names if spec == name or (name.endswith("/") and spec.startswith(name))]
    if fitting:
        longest = max(fitting, key=len)
        return longest, _find("models", longest, MODELS)
    listed = [f"{name}..." if name.endswith("/") else name for name in names]
    raise unknown_name("model", spec, [*listed, "baseline/chance"])


def load_adapter(folder: str) -> Any:
    """Load the adapter in a folder, to be attached to a local model."""
    module, _, function = ADAPTER_LOADER.partition(":")
    return getattr(importlib.import_module(module), function)(folder)


def load_project_verdicts(store: Store, word: str) -> list[Verdict] | None:
    """Read the verdicts of an annotation project.

    Returns:
        The verdicts; None if there is no such project.
    """
    module, _, function = PROJECT_VERDICTS.partition(":")
    found: list[Verdict] | None = getattr(importlib.import_module(module), function)(store, word)
    return found


def perturbation(name: str) -> Perturbation | TextPerturbation:
    from sightline.builders.perturbations import Perturbation, TextPerturbation
    from sightline.contract import arguments_of, check_contract

    entry = _find("perturbations", name, PERTURBATIONS)
    sees_text = "question" in arguments_of(getattr(entry, "apply", None))
    check_contract("perturbation", name, entry, TextPerturbation if sees_text else Perturbation)
    made: Perturbation | TextPerturbation = entry()
    return made


def perturbation_names() -> list[str]:
    """List the perturbations that are installed or plugged in."""
    return _names("perturbations", PERTURBATIONS)


def plug_in(file: str) -> None:
    """Load a Python file and register its mappings `benchmarks`, `models` and `perturbations`."""
    module = load_plugin(file)
    found = {kind: getattr(module, kind) for kind in _from_plugins if hasattr(module, kind)}
    if not found:
        raise UserError(
            f"defines none of {', '.join(_from_plugins)}", file=file, expected="a mapping of names"
        )
    for kind, things in found.items():
        if not isinstance(things, Mapping):
            raise UserError(
                "is no mapping of names",
                file=file,
                field=kind,
                found=things,
                expected=f'{kind} = {{"NAME": CLASS}}',
            )
        for name, entry in things.items():
            if not (isinstance(name, str) and name and name.isprintable() and _fits(kind, entry)):
                raise UserError(
                    "is not a name with its class or function",
                    file=file,
                    field=kind,
                    found={name: entry},
                    expected=_EXPECTED[kind],
                )
        _from_plugins[kind].update(things)


def _fits(kind: str, entry: object) -> bool:
    """Whether an entry can be called; what a class must have is checked when it is used."""
    if not callable(entry):
        return False
    if kind != "models":
        return True
    try:
        inspect.signature(entry).bind("rest", "spec", "options")
    except (TypeError, ValueError):  # ValueError: a type of Python itself, which makes no model
        return False
    return True


def _find(kind: str, name: str, built_in: Mapping[str, str]) -> Any:
    if name in _from_plugins[kind]:
        return _from_plugins[kind][name]
    if name in built_in:
        return _load(built_in[name])
    for entry in _entry_points(kind):
        if entry.name == name:
            add_package(entry.module)
            return entry.load()
    names = _names(kind, built_in)
    raise UserError(
        f"unknown {kind.removesuffix('s')} '{name}'{did_you_mean(name, names)}",
        expected=f"one of {', '.join(names)}, or --plugin FILE with a file that defines it",
    )


def _load(entry: str) -> Any:
    module, _, attribute = entry.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _names(kind: str, built_in: Mapping[str, str]) -> list[str]:
    return sorted({*built_in, *_from_plugins[kind], *(entry.name for entry in _entry_points(kind))})


@cache
def _entry_points(kind: str) -> Any:
    """What other installed packages register; read once, because all of them are searched."""
    from importlib.metadata import entry_points

    return entry_points(group=f"sightline.{kind}")
