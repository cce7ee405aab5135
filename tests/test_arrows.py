"""Which package may import which. Whoever adds an arrow decides so, here."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import sightline

ROOT = Path(sightline.__file__).parent

ORDER = [
    "cli",
    "web",
    "maintenance",
    "annotation",
    "interop",
    "reporting.html",
    "outcome_index",
    "evaluation",
    "reporting",
    "results",
    "judging",
    "plan",
    "adapter",
    "builders",
    "data",
    "engine",
    "replicas",
    "models",
    "benchmarks",
    "metrics",
    "formats",
    "scoring",
]
"""Packages from the top to the ground: a package imports only packages below it in this list.

`reporting.html` is a package of its own: it shows groups and runs, the rest of `reporting` tables of results.
"""

TOP = ("__main__", "api")
"""Single modules above all packages."""

GROUND = (
    "clusters",
    "config",
    "contract",
    "counts",
    "decoding",
    "errors",
    "escaping",
    "images",
    "local_time",
    "metric_types",
    "output",
    "paths",
    "plugins",
    "progress",
    "prompts",
    "secret_text",
    "types",
    "visible",
)
"""Single modules below all packages: they import only each other."""

REGISTERED = {
    "adapter": "the function that loads the adapter of --model-arg adapter=FOLDER",
    "annotation": "the function that reads the verdicts of --judge human:PROJECT",
    "benchmarks": "the benchmarks and their base class",
    "builders": "the perturbations and their base class",
    "engine": "the type of the store that an annotation project is in",
    "formats": "the export formats",
    "models": "the factories of models",
}
"""The packages that registry.py names, all of them lazily, and what it takes from each."""

LOOK_UPS = {
    "benchmark": "benchmarks",
    "benchmark_class": "benchmarks",
    "benchmark_names": "benchmarks",
    "is_benchmark": "benchmarks",
    "export_formats": "benchmarks",
    "load_adapter": "adapter",
    "load_project_verdicts": "annotation",
    "model_factory": "models",
    "perturbation": "builders",
    "perturbation_names": "builders",
    "plug_in": "",
}
"""Function of registry.py -> the package whose objects it returns: who calls it uses that package."""

EXCEPTIONS = {
    ("evaluation", "annotation"): "--judge human:PROJECT takes the verdicts of an annotation project",
    ("models", "adapter"): "a local model takes the adapter of --model-arg adapter=FOLDER by its interface",
}
"""Upward arrows that only the registry makes, and why."""


def test_every_package_stands_in_the_order() -> None:
    assert sorted(imported()) == sorted(ORDER)


def test_packages_import_only_what_stands_below_them() -> None:
    upward = {
        (package, other)
        for package, others in imported().items()
        for other in others
        if other in TOP or ORDER.index(other) < ORDER.index(package)
    }
    assert upward == set()


def test_no_module_has_the_name_of_a_function_of_the_api() -> None:
    """An import of `sightline.x` would replace the function `sightline.x`."""
    assert not {*ORDER, *_paths()} & {*sightline.__all__}


def test_benchmarks_and_models_do_not_import_each_other() -> None:
    packages = imported()
    assert "models" not in packages["benchmarks"]
    assert "benchmarks" not in packages["models"]


def test_single_modules_import_only_what_their_rank_allows() -> None:
    names = {name for name in _paths() if name != "__init__"}
    assert names == {*GROUND, *TOP, "registry"}
    packages = set(ORDER)
    for name in GROUND:
        assert _first_parts(_paths()[name]) & {*packages, *TOP, "registry"} == set(), name


def test_the_registry_names_only_what_is_listed() -> None:
    assert _first_parts(ROOT / "registry.py") & set(ORDER) == set(REGISTERED)
    functions = {
        node.name
        for node in ast.parse((ROOT / "registry.py").read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert functions == set(LOOK_UPS)


def test_no_files_import_each_other_in_a_circle() -> None:
    files = {_module(file): file for file in ROOT.rglob("*.py") if file.name != "__init__.py"}
    imports = {
        module: {
            other for name in modules(file) for other in (name, name.rpartition(".")[0]) if other in files
        }
        for module, file in files.items()
    }
    TopologicalSorter(imports).prepare()  # raises CycleError with the circle


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT.parent).with_suffix("").parts)


def _paths() -> dict[str, Path]:
    """The single modules next to the packages, by name."""
    return {file.stem: file for file in ROOT.glob("*.py")}


def imported() -> dict[str, set[str]]:
    """What each package imports of other packages and of TOP; a look-up in the registry counts."""
    imports: dict[str, set[str]] = defaultdict(set)
    for file in ROOT.glob("*/**/*.py"):
        package = _part(_module(file))
        imports[package] |= _first_parts(file)
        imports[package] |= {LOOK_UPS[name] for name in _look_ups(file)} - {""}
    for package in imports:
        imports[package] &= {*ORDER, *TOP}
        imports[package] -= {package}
        imports[package] -= {other for user, other in EXCEPTIONS if user == package}
    return imports


def _first_parts(file: Path) -> set[str]:
    """The packages and single modules that a file imports, or names in a string such as 'sightline.a.b:C'."""
    return {_part(name) for name in (*modules(file), *_strings(file)) if name.startswith("sightline.")}


def _part(name: str) -> str:
    """The package of a module, or the single module: 'sightline.reporting.html.plots' -> 'reporting.html'."""
    _, first, *rest = name.split(".")
    nested = f"{first}.{rest[0]}" if rest else first
    return nested if nested in ORDER else first


def _strings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and re.fullmatch(r"sightline(\.\w+)+(:\w+)?", str(node.value)):
            yield str(node.value).partition(":")[0]


def _look_ups(file: Path) -> set[str]:
    """The functions of the registry that a file uses."""
    names = {name.removeprefix("sightline.registry.") for name in modules(file)}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "registry":
            names.add(node.attr)
    return names & set(LOOK_UPS)


def modules(file: Path) -> Iterator[str]:
    """The modules, and the names in them, that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: imports are written in full"
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


PRINTING = {
    "output.py": "the functions that print",
    "models/process_supervisor.py": "a script of its own, which writes to the log of a server",
}
"""Files that may print by themselves, and why."""


def test_one_module_prints_lines() -> None:
    prints = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
    }
    assert prints == set(PRINTING)
